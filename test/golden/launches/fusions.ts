// checks bits passes: launches
// In the last one what needs a reduction of the same row reads that again: not by columns.
graph @main(%0: f32[4,6], %1: f32[6,2], %2: f32[10,4], %3: f32[5,40]) -> (f32[4,6], f32[2,2,3], f32[5,8], f32[40]) {
  %4 = fusion %0 {kind = 0} {
    body(%5: f32[4,6]) {
      %6 = reduce_max %5 {axes = [1]} : f32[4]
      %7 = broadcast %6 {shape = [4,6], axes = [0]} : f32[4,6]
      %8 = subtract %5, %7 : f32[4,6]
      %9 = reduce_sum %8 {axes = [1]} : f32[4]
      %10 = broadcast %9 {shape = [4,6], axes = [0]} : f32[4,6]
      %11 = divide %8, %10 : f32[4,6]
      return %11
    }
  } : f32[4,6]
  %12 = fusion %1 {kind = 0} {
    body(%13: f32[6,2]) {
      %14 = reshape %13 {shape = [2,3,2]} : f32[2,3,2]
      %15 = transpose %14 {axes = [2,0,1]} : f32[2,2,3]
      %16 = negate %15 : f32[2,2,3]
      return %16
    }
  } : f32[2,2,3]
  %17 = fusion %2 {kind = 0} {
    body(%18: f32[10,4]) {
      %19 = transpose %18 {axes = [1,0]} : f32[4,10]
      %20 = reshape %19 {shape = [8,5]} : f32[8,5]
      %21 = transpose %20 {axes = [1,0]} : f32[5,8]
      %22 = negate %21 : f32[5,8]
      return %22
    }
  } : f32[5,8]
  %23 = fusion %3 {kind = 0} {
    body(%24: f32[5,40]) {
      %25 = transpose %24 {axes = [1,0]} : f32[40,5]
      %26 = reduce_sum %25 {axes = [1]} : f32[40]
      %27 = broadcast %26 {shape = [40,5], axes = [0]} : f32[40,5]
      %28 = subtract %25, %27 : f32[40,5]
      %29 = reduce_product %28 {axes = [1]} : f32[40]
      return %29
    }
  } : f32[40]
  return %4, %12, %17, %23
}
