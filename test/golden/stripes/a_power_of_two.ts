// checks bits of plain, but NaN
// counts: steps 1
graph @main(%0: f32[1,256,40], %1: f32[1,1024,40], %2: f32[1,1024,24]) -> (f32[1,256,24]) {
  %3 = dot_general %0, %1 {lhs_contract = [2], lhs_batch = [0], rhs_contract = [2], rhs_batch = [0]} : f32[1,256,1024]
  %30 = reduce_max %3 {axes = [2]} : f32[1,256]
  %31 = broadcast %30 {shape = [1,256,1024], axes = [0,1]} : f32[1,256,1024]
  %32 = subtract %3, %31 : f32[1,256,1024]
  %33 = exp %32 : f32[1,256,1024]
  %34 = reduce_sum %33 {axes = [2]} : f32[1,256]
  %35 = broadcast %34 {shape = [1,256,1024], axes = [0,1]} : f32[1,256,1024]
  %9 = divide %33, %35 : f32[1,256,1024]
  %10 = dot_general %9, %2 {lhs_contract = [2], lhs_batch = [0], rhs_contract = [1], rhs_batch = [0]} : f32[1,256,24]
  return %10
}
