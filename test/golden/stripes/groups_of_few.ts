// checks bits of plain, but NaN
// counts: steps 2
graph @main(%0: f32[300,12,5], %1: f32[300,10,5], %2: f32[300,10,3]) -> (f32[300,12,3]) {
  %3 = dot_general %0, %1 {lhs_contract = [2], lhs_batch = [0], rhs_contract = [2], rhs_batch = [0]} : f32[300,12,10]
  %30 = reduce_max %3 {axes = [2]} : f32[300,12]
  %31 = broadcast %30 {shape = [300,12,10], axes = [0,1]} : f32[300,12,10]
  %32 = subtract %3, %31 : f32[300,12,10]
  %33 = exp %32 : f32[300,12,10]
  %34 = reduce_sum %33 {axes = [2]} : f32[300,12]
  %35 = broadcast %34 {shape = [300,12,10], axes = [0,1]} : f32[300,12,10]
  %9 = divide %33, %35 : f32[300,12,10]
  %10 = dot_general %9, %2 {lhs_contract = [2], lhs_batch = [0], rhs_contract = [1], rhs_batch = [0]} : f32[300,12,3]
  return %10
}
