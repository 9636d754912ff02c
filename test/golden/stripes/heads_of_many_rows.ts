// checks bits of plain, but NaN
// counts: steps 1, bytes of temporaries 0
graph @main(%0: f32[2,500,2,40], %1: f32[2,600,2,40], %2: f32[2,600,2,24]) -> (f32[2,500,2,24]) {
  %3 = dot_general %0, %1 {lhs_contract = [3], lhs_batch = [0,2], rhs_contract = [3], rhs_batch = [0,2]} : f32[2,2,500,600]
  %30 = reduce_max %3 {axes = [3]} : f32[2,2,500]
  %31 = broadcast %30 {shape = [2,2,500,600], axes = [0,1,2]} : f32[2,2,500,600]
  %32 = subtract %3, %31 : f32[2,2,500,600]
  %33 = exp %32 : f32[2,2,500,600]
  %34 = reduce_sum %33 {axes = [3]} : f32[2,2,500]
  %35 = broadcast %34 {shape = [2,2,500,600], axes = [0,1,2]} : f32[2,2,500,600]
  %9 = divide %33, %35 : f32[2,2,500,600]
  %10 = dot_general %9, %2 {lhs_contract = [3], lhs_batch = [0,1], rhs_contract = [1], rhs_batch = [0,2]} : f32[2,2,500,24]
  %11 = transpose %10 {axes = [0,2,1,3]} : f32[2,500,2,24]
  return %11
}
