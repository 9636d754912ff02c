// passes: report
graph @mlp mesh [4] (%x: f32[32,128], %w1: f32[128,512] sharded [[],[0]], %b1: f32[512] sharded [[0]], %w2: f32[512,128] sharded [[0],[]], %b2: f32[128]) -> (f32[32,128] sharded [[],[]]) {
  %1 = dot_general %x, %w1 {lhs_contract = [1], lhs_batch = [], rhs_contract = [0], rhs_batch = []} : f32[32,512]
  %2 = broadcast %b1 {shape = [32,512], axes = [1]} : f32[32,512]
  %3 = add %1, %2 : f32[32,512]
  %4 = tanh %3 : f32[32,512]
  %5 = dot_general %4, %w2 {lhs_contract = [1], lhs_batch = [], rhs_contract = [0], rhs_batch = []} : f32[32,128]
  %6 = broadcast %b2 {shape = [32,128], axes = [1]} : f32[32,128]
  %7 = add %5, %6 : f32[32,128]
  return %7
}
