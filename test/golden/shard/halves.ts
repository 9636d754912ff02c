// passes: report
graph @half mesh [2] (%x: bf16[8,16] sharded [[],[0]], %w: bf16[16,4] sharded [[0],[]]) -> (bf16[8,4], bf16[8]) {
  %1 = dot_general %x, %w {lhs_contract = [1], lhs_batch = [], rhs_contract = [0], rhs_batch = []} : bf16[8,4]
  %2 = reduce_sum %x {axes = [1]} : bf16[8]
  return %1, %2
}
