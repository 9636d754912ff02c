// checks bits of plain, but NaN
// counts: steps 2
graph @main(%0: f32[6,4,40], %1: f32[6,132,40], %2: f32[6,132,24]) -> (f32[6,4,24]) {
  %3 = dot_general %0, %1 {lhs_contract = [2], lhs_batch = [0], rhs_contract = [2], rhs_batch = [0]} : f32[6,4,132]
  %30 = reduce_max %3 {axes = [2]} : f32[6,4]
  %31 = broadcast %30 {shape = [6,4,132], axes = [0,1]} : f32[6,4,132]
  %32 = subtract %3, %31 : f32[6,4,132]
  %33 = exp %32 : f32[6,4,132]
  %34 = reduce_sum %33 {axes = [2]} : f32[6,4]
  %35 = broadcast %34 {shape = [6,4,132], axes = [0,1]} : f32[6,4,132]
  %9 = divide %33, %35 : f32[6,4,132]
  %10 = dot_general %9, %2 {lhs_contract = [2], lhs_batch = [0], rhs_contract = [1], rhs_batch = [0]} : f32[6,4,24]
  return %10
}
