// checks bits of plain, but NaN
// counts: steps 1, bytes of temporaries 0
graph @main(%0: f32[3,80,128], %1: f32[3,132,128], %2: f32[3,132,96]) -> (f32[3,80,96]) {
  %20 = reshape %0 {shape = [3,80,4,32]} : f32[3,80,4,32]
  %21 = transpose %20 {axes = [0,2,1,3]} : f32[3,4,80,32]
  %22 = reshape %21 {shape = [3,4,1,80,32]} : f32[3,4,1,80,32]
  %23 = reshape %1 {shape = [3,132,4,32]} : f32[3,132,4,32]
  %24 = transpose %23 {axes = [0,2,1,3]} : f32[3,4,132,32]
  %25 = reshape %2 {shape = [3,132,4,24]} : f32[3,132,4,24]
  %26 = transpose %25 {axes = [0,2,1,3]} : f32[3,4,132,24]
  %3 = dot_general %22, %24 {lhs_contract = [4], lhs_batch = [0,1], rhs_contract = [3], rhs_batch = [0,1]} : f32[3,4,1,80,132]
  %30 = reduce_max %3 {axes = [4]} : f32[3,4,1,80]
  %31 = broadcast %30 {shape = [3,4,1,80,132], axes = [0,1,2,3]} : f32[3,4,1,80,132]
  %32 = subtract %3, %31 : f32[3,4,1,80,132]
  %33 = exp %32 : f32[3,4,1,80,132]
  %34 = reduce_sum %33 {axes = [4]} : f32[3,4,1,80]
  %35 = broadcast %34 {shape = [3,4,1,80,132], axes = [0,1,2,3]} : f32[3,4,1,80,132]
  %9 = divide %33, %35 : f32[3,4,1,80,132]
  %10 = dot_general %9, %26 {lhs_contract = [4], lhs_batch = [0,1], rhs_contract = [2], rhs_batch = [0,1]} : f32[3,4,1,80,24]
  %11 = reshape %10 {shape = [3,4,80,24]} : f32[3,4,80,24]
  %12 = transpose %11 {axes = [0,2,1,3]} : f32[3,80,4,24]
  %13 = reshape %12 {shape = [3,80,96]} : f32[3,80,96]
  return %13
}
