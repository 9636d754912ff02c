// passes: report
graph @matmul mesh [2,2] (%x: f32[64,64] sharded [[0],[]], %w: f32[64,64] sharded [[],[1]]) -> (f32[64,64]) {
  %1 = dot_general %x, %w {lhs_contract = [1], lhs_batch = [], rhs_contract = [0], rhs_batch = []} : f32[64,64]
  return %1
}
