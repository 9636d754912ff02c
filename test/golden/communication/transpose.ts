// passes: report
// sends: 1 collective, 65536 bytes
graph @main mesh @mesh ["data"=4] (%0: f32[256,256] sharded [[0],[]]) -> (f32[256,256] sharded [[0],[]]) {
  %1 = transpose %0 {axes = [1,0]} : f32[256,256]
  return %1
}
