// passes: report
graph @mlp mesh [2,2] (%x: f32[32,128] sharded [[0],[]], %w1: f32[128,512] sharded [[],[1]], %w2: f32[512,128] sharded [[1],[]]) -> (f32[32,128] sharded [[0],[]], f32[]) {
  %1 = dot_general %x, %w1 {lhs_contract = [1], lhs_batch = [], rhs_contract = [0], rhs_batch = []} : f32[32,512]
  %2 = tanh %1 : f32[32,512]
  %3 = dot_general %2, %w2 {lhs_contract = [1], lhs_batch = [], rhs_contract = [0], rhs_batch = []} : f32[32,128]
  %4 = multiply %3, %3 : f32[32,128]
  %5 = reduce_sum %4 {axes = [0,1]} : f32[]
  return %3, %5
}
