// checks bits of plain
// counts: steps 1, epilogues 1
graph @main(%0: f32[64,200], %1: f32[200,300]) -> (f32[64,300], f32[64,300]) {
  %2 = dot_general %0, %1 {lhs_contract = [1], lhs_batch = [], rhs_contract = [0], rhs_batch = []} : f32[64,300]
  %3 = tanh %2 : f32[64,300]
  return %2, %3
}
