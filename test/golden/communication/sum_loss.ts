// passes: report
// sends: 1 collective, 4 bytes
graph @main mesh @mesh ["data"=2,"model"=4] (%0: f32[128,256] sharded [[0],[1]], %1: f32[128,256] sharded [[0],[1]]) -> (f32[] sharded []) {
  %2 = subtract %0, %1 : f32[128,256]
  %3 = multiply %2, %2 : f32[128,256]
  %4 = reduce_sum %3 {axes = [0,1]} : f32[]
  return %4
}
