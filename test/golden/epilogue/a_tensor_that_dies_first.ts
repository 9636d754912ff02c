// checks bits of plain
// counts: steps 1, epilogues 1
graph @main(%0: f32[90,900], %1: f32[900,110], %2: f32[90,110]) -> (f32[90,110]) {
  %3 = dot_general %0, %1 {lhs_contract = [1], lhs_batch = [], rhs_contract = [0], rhs_batch = []} : f32[90,110]
  %4 = subtract %2, %3 : f32[90,110]
  return %4
}
