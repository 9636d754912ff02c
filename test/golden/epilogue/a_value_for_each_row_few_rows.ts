// checks bits of plain
// counts: steps 1, epilogues 1
graph @main(%0: f32[5,300], %1: f32[300,2500], %2: f32[5]) -> (f32[5,2500]) {
  %3 = dot_general %0, %1 {lhs_contract = [1], lhs_batch = [], rhs_contract = [0], rhs_batch = []} : f32[5,2500]
  %4 = broadcast %2 {shape = [5,2500], axes = [0]} : f32[5,2500]
  %5 = multiply %3, %4 : f32[5,2500]
  return %5
}
