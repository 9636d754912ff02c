// passes: combine
// sends: 1 collective, 65536 bytes
graph @main mesh @mesh ["data"=4] partitioned (%0: f32[64,256] sharded [[0],[]]) -> (f32[64,256] sharded [[0],[]]) {
  %1 = all_to_all %0 {axes = [0], split = 1, concat = 0} : f32[256,64]
  %2 = transpose %1 {axes = [1,0]} : f32[64,256]
  return %2
}
