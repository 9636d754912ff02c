// checks bits of plain
// counts: steps 1, epilogues 1
graph @main(%0: f32[60,70], %1: f32[70,120], %2: f32[4]) -> (f32[60,30,4]) {
  %3 = dot_general %0, %1 {lhs_contract = [1], lhs_batch = [], rhs_contract = [0], rhs_batch = []} : f32[60,120]
  %4 = reshape %3 {shape = [60,30,4]} : f32[60,30,4]
  %5 = broadcast %2 {shape = [60,30,4], axes = [2]} : f32[60,30,4]
  %6 = add %4, %5 : f32[60,30,4]
  return %6
}
