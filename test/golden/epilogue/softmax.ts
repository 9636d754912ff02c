// checks bits of plain
// counts: steps 1, epilogues 1
graph @main(%0: f32[300,80], %1: f32[80,400]) -> (f32[300,400]) {
  %2 = dot_general %0, %1 {lhs_contract = [1], lhs_batch = [], rhs_contract = [0], rhs_batch = []} : f32[300,400]
  %3 = reduce_max %2 {axes = [1]} : f32[300]
  %4 = broadcast %3 {shape = [300,400], axes = [0]} : f32[300,400]
  %5 = subtract %2, %4 : f32[300,400]
  %6 = exp %5 : f32[300,400]
  %7 = reduce_sum %6 {axes = [1]} : f32[300]
  %8 = broadcast %7 {shape = [300,400], axes = [0]} : f32[300,400]
  %9 = divide %6, %8 : f32[300,400]
  return %9
}
