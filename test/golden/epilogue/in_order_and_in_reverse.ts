// checks bits of plain
// counts: steps 2, epilogues 0
graph @main(%0: f32[64,100], %1: f32[100,256]) -> (f32[64,256]) {
  %2 = dot_general %0, %1 {lhs_contract = [1], lhs_batch = [], rhs_contract = [0], rhs_batch = []} : f32[64,256]
  %3 = reverse %2 {axes = [0]} : f32[64,256]
  %4 = subtract %2, %3 : f32[64,256]
  return %4
}
