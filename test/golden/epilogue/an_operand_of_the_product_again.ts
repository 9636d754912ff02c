// checks bits of plain
// counts: steps 1, epilogues 1
graph @main(%0: f32[150,150], %1: f32[150,150]) -> (f32[150,150]) {
  %2 = dot_general %0, %1 {lhs_contract = [1], lhs_batch = [], rhs_contract = [0], rhs_batch = []} : f32[150,150]
  %3 = add %0, %2 : f32[150,150]
  %4 = multiply %3, %1 : f32[150,150]
  return %4
}
