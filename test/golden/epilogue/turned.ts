// checks bits of plain
// counts: steps 2, epilogues 0
graph @main(%0: f32[64,100], %1: f32[100,256], %2: f32[256,64]) -> (f32[256,64], f32[64,256]) {
  %3 = dot_general %0, %1 {lhs_contract = [1], lhs_batch = [], rhs_contract = [0], rhs_batch = []} : f32[64,256]
  %4 = transpose %3 {axes = [1,0]} : f32[256,64]
  %5 = multiply %4, %2 : f32[256,64]
  %6 = add %5, %4 : f32[256,64]
  return %6, %3
}
