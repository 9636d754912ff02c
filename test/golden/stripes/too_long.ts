// checks bits of plain, but NaN
// counts: steps 2
graph @main(%0: f32[1,12,16], %1: f32[1,8200,16], %2: f32[1,8200,8]) -> (f32[1,12,8]) {
  %3 = dot_general %0, %1 {lhs_contract = [2], lhs_batch = [0], rhs_contract = [2], rhs_batch = [0]} : f32[1,12,8200]
  %30 = reduce_max %3 {axes = [2]} : f32[1,12]
  %31 = broadcast %30 {shape = [1,12,8200], axes = [0,1]} : f32[1,12,8200]
  %32 = subtract %3, %31 : f32[1,12,8200]
  %33 = exp %32 : f32[1,12,8200]
  %34 = reduce_sum %33 {axes = [2]} : f32[1,12]
  %35 = broadcast %34 {shape = [1,12,8200], axes = [0,1]} : f32[1,12,8200]
  %9 = divide %33, %35 : f32[1,12,8200]
  %10 = dot_general %9, %2 {lhs_contract = [2], lhs_batch = [0], rhs_contract = [1], rhs_batch = [0]} : f32[1,12,8]
  return %10
}
