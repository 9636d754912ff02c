// checks bits of plain
// counts: steps 1, epilogues 1
graph @main(%0: f32[3000,300], %1: f32[300,1]) -> (f32[3000,1]) {
  %2 = dot_general %0, %1 {lhs_contract = [1], lhs_batch = [], rhs_contract = [0], rhs_batch = []} : f32[3000,1]
  %3 = tanh %2 : f32[3000,1]
  return %3
}
