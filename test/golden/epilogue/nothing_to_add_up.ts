// checks bits of plain
// counts: steps 1, epilogues 1
graph @main(%0: f32[30,0], %1: f32[0,40], %2: f32[40]) -> (f32[30,40]) {
  %3 = dot_general %0, %1 {lhs_contract = [1], lhs_batch = [], rhs_contract = [0], rhs_batch = []} : f32[30,40]
  %4 = broadcast %2 {shape = [30,40], axes = [1]} : f32[30,40]
  %5 = add %3, %4 : f32[30,40]
  return %5
}
