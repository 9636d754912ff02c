// checks bits of plain
// counts: steps 1, epilogues 1
graph @main(%0: f32[9,300], %1: f32[300,3000]) -> (f32[9,3000]) {
  %2 = dot_general %0, %1 {lhs_contract = [1], lhs_batch = [], rhs_contract = [0], rhs_batch = []} : f32[9,3000]
  %3 = reduce_max %2 {axes = [1]} : f32[9]
  %4 = broadcast %3 {shape = [9,3000], axes = [0]} : f32[9,3000]
  %5 = subtract %2, %4 : f32[9,3000]
  %6 = exp %5 : f32[9,3000]
  %7 = reduce_sum %6 {axes = [1]} : f32[9]
  %8 = broadcast %7 {shape = [9,3000], axes = [0]} : f32[9,3000]
  %9 = divide %6, %8 : f32[9,3000]
  return %9
}
