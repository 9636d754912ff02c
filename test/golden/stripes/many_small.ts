// checks bits of plain, but NaN
// counts: steps 1
graph @main(%0: f32[300,12,5], %1: f32[300,20,5], %2: f32[300,20,4]) -> (f32[300,12,4]) {
  %3 = dot_general %0, %1 {lhs_contract = [2], lhs_batch = [0], rhs_contract = [2], rhs_batch = [0]} : f32[300,12,20]
  %30 = reduce_max %3 {axes = [2]} : f32[300,12]
  %31 = broadcast %30 {shape = [300,12,20], axes = [0,1]} : f32[300,12,20]
  %32 = subtract %3, %31 : f32[300,12,20]
  %33 = exp %32 : f32[300,12,20]
  %34 = reduce_sum %33 {axes = [2]} : f32[300,12]
  %35 = broadcast %34 {shape = [300,12,20], axes = [0,1]} : f32[300,12,20]
  %9 = divide %33, %35 : f32[300,12,20]
  %10 = dot_general %9, %2 {lhs_contract = [2], lhs_batch = [0], rhs_contract = [1], rhs_batch = [0]} : f32[300,12,4]
  return %10
}
