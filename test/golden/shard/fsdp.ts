// passes: report
graph @fsdp mesh [4] (%x: f32[64,256] sharded [[0],[]], %w: f32[256,128] sharded [[0],[]]) -> (f32[64,128] sharded [[0],[]]) {
  %1 = dot_general %x, %w {lhs_contract = [1], lhs_batch = [], rhs_contract = [0], rhs_batch = []} : f32[64,128]
  %2 = tanh %1 : f32[64,128]
  return %2
}
