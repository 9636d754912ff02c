// passes: combine
// sends: 1 collective, 4 bytes
graph @main mesh @mesh ["data"=2,"model"=4] partitioned (%0: f32[64,64] sharded [[0],[1]], %1: f32[64,64] sharded [[0],[1]]) -> (f32[] sharded []) {
  %2 = subtract %0, %1 : f32[64,64]
  %3 = multiply %2, %2 : f32[64,64]
  %4 = reduce_sum %3 {axes = [0,1]} : f32[]
  %5 = all_reduce_sum %4 {axes = [0,1]} : f32[]
  return %5
}
