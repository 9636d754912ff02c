// checks bits of plain
// counts: steps 2, epilogues 1
graph @main(%0: f32[64,100], %1: f32[100,256], %2: f32[64,80], %3: f32[80,256]) -> (f32[64,256]) {
  %4 = dot_general %0, %1 {lhs_contract = [1], lhs_batch = [], rhs_contract = [0], rhs_batch = []} : f32[64,256]
  %5 = dot_general %2, %3 {lhs_contract = [1], lhs_batch = [], rhs_contract = [0], rhs_batch = []} : f32[64,256]
  %6 = add %4, %5 : f32[64,256]
  %7 = tanh %6 : f32[64,256]
  return %7
}
