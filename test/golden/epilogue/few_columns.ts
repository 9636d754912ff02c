// checks bits of plain
// counts: steps 1, epilogues 1
// Many rows of four columns are groups of interleaved members.
graph @main(%0: f32[9000,60], %1: f32[60,4], %2: f32[4]) -> (f32[9000,4]) {
  %3 = dot_general %0, %1 {lhs_contract = [1], lhs_batch = [], rhs_contract = [0], rhs_batch = []} : f32[9000,4]
  %4 = broadcast %2 {shape = [9000,4], axes = [1]} : f32[9000,4]
  %5 = add %3, %4 : f32[9000,4]
  %6 = iota {axis = -1} : f32[9000,4]
  %7 = add %5, %6 : f32[9000,4]
  return %7
}
