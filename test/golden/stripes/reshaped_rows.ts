// checks bits of plain, but NaN
// counts: steps 1
graph @main(%0: f32[4,3,60,20], %1: f32[4,92,20], %2: f32[4,92,32]) -> (f32[4,3,60,32]) {
  %3 = dot_general %0, %1 {lhs_contract = [3], lhs_batch = [0], rhs_contract = [2], rhs_batch = [0]} : f32[4,3,60,92]
  %4 = reshape %3 {shape = [4,180,92]} : f32[4,180,92]
  %30 = reduce_max %4 {axes = [2]} : f32[4,180]
  %31 = broadcast %30 {shape = [4,180,92], axes = [0,1]} : f32[4,180,92]
  %32 = subtract %4, %31 : f32[4,180,92]
  %33 = exp %32 : f32[4,180,92]
  %34 = reduce_sum %33 {axes = [2]} : f32[4,180]
  %35 = broadcast %34 {shape = [4,180,92], axes = [0,1]} : f32[4,180,92]
  %9 = divide %33, %35 : f32[4,180,92]
  %6 = reshape %9 {shape = [4,3,60,92]} : f32[4,3,60,92]
  %10 = dot_general %6, %2 {lhs_contract = [3], lhs_batch = [0], rhs_contract = [1], rhs_batch = [0]} : f32[4,3,60,32]
  return %10
}
