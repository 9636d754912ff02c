// checks bits of plain
// counts: steps 2, epilogues 1
graph @main(%0: f32[60,70], %1: f32[70,90], %2: f32[60,90]) -> (f32[60,90], f32[60,90]) {
  %3 = cumulative_sum %2 {axis = 0, reverse = false} : f32[60,90]
  %4 = dot_general %0, %1 {lhs_contract = [1], lhs_batch = [], rhs_contract = [0], rhs_batch = []} : f32[60,90]
  %5 = add %4, %3 : f32[60,90]
  return %5, %3
}
