// checks bits of plain
// counts: steps 2, epilogues 2
graph @main(%0: f32[64,100], %1: f32[100,256], %2: f32[64,80], %3: f32[80,57]) -> (f32[64,256], f32[64,57]) {
  %4 = dot_general %0, %1 {lhs_contract = [1], lhs_batch = [], rhs_contract = [0], rhs_batch = []} : f32[64,256]
  %5 = dot_general %2, %3 {lhs_contract = [1], lhs_batch = [], rhs_contract = [0], rhs_batch = []} : f32[64,57]
  %6 = tanh %4 : f32[64,256]
  %7 = exp %5 : f32[64,57]
  return %6, %7
}
