// checks bits of plain, but NaN
// counts: steps 4
graph @main(%0: f32[16,16,12,8], %1: f32[16,16,12,8], %2: f32[16,16,12,8]) -> (f32[16,16,12,8]) {
  %3 = dot_general %0, %1 {lhs_contract = [3], lhs_batch = [0,2], rhs_contract = [3], rhs_batch = [0,2]} : f32[16,12,16,16]
  %30 = reduce_max %3 {axes = [3]} : f32[16,12,16]
  %31 = broadcast %30 {shape = [16,12,16,16], axes = [0,1,2]} : f32[16,12,16,16]
  %32 = subtract %3, %31 : f32[16,12,16,16]
  %33 = exp %32 : f32[16,12,16,16]
  %34 = reduce_sum %33 {axes = [3]} : f32[16,12,16]
  %35 = broadcast %34 {shape = [16,12,16,16], axes = [0,1,2]} : f32[16,12,16,16]
  %9 = divide %33, %35 : f32[16,12,16,16]
  %10 = dot_general %9, %2 {lhs_contract = [3], lhs_batch = [0,1], rhs_contract = [1], rhs_batch = [0,2]} : f32[16,12,16,8]
  %11 = transpose %10 {axes = [0,2,1,3]} : f32[16,16,12,8]
  return %11
}
