// passes: combine
// sends: 1 collective, 131072 bytes
graph @main mesh @mesh ["data"=2,"model"=4] partitioned (%0: f32[64,512] sharded [[0],[]], %1: f32[512,512] sharded [[],[1]], %2: f32[512,512] sharded [[1],[]]) -> (f32[64,512] sharded [[0],[]]) {
  %3 = dot_general %0, %1 {lhs_contract = [1], lhs_batch = [], rhs_contract = [0], rhs_batch = []} : f32[64,512]
  %4 = constant 0.0 : f32[64,512]
  %5 = max %3, %4 : f32[64,512]
  %6 = dot_general %5, %2 {lhs_contract = [1], lhs_batch = [], rhs_contract = [0], rhs_batch = []} : f32[64,512]
  %7 = all_reduce_sum %6 {axes = [1]} : f32[64,512]
  return %7
}
