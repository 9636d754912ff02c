// checks bits of plain
// counts: steps 1, epilogues 1
graph @main(%0: f32[300,80], %1: f32[80,400]) -> (f32[300]) {
  %2 = dot_general %0, %1 {lhs_contract = [1], lhs_batch = [], rhs_contract = [0], rhs_batch = []} : f32[300,400]
  %3 = reduce_sum %2 {axes = [1]} : f32[300]
  return %3
}
