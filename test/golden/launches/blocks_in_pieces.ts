// checks bits passes: launches
// Sums of more floats than a block has, over dims with a kept one between them: a thread joins what a block has of the pieces, which may be longer than a block or of any length. Where more kept dims lie between them, or pieces are short, elements are copied first.
graph @main(%0: f32[170,3,100], %1: f64[2,3,20000], %2: bf16[4,2,64,65], %3: f16[1025,2,17], %4: f32[5,2,1,129,2,128], %5: f32[5500,2,3], %6: f32[6,2,3,5,1201], %7: f32[3]) -> (f32[3], f64[3], bf16[2], f16[2], f32[2,2], f32[2], f32[2,5], f32[3], f32[3], f32[3]) {
  %10 = reduce_sum %0 {axes = [0,2]} : f32[3]
  %11 = reduce_sum %1 {axes = [0,2]} : f64[3]
  %12 = reduce_sum %2 {axes = [0,2,3]} : bf16[2]
  %13 = reduce_product %3 {axes = [0,2]} : f16[2]
  %14 = reduce_sum %4 {axes = [0,2,3,5]} : f32[2,2]
  %15 = reduce_sum %5 {axes = [0,2]} : f32[2]
  %16 = reduce_sum %6 {axes = [0,2,4]} : f32[2,5]
  %20, %21, %22 = fusion %0, %7 {kind = 0} {
    body(%23: f32[170,3,100], %24: f32[3]) {
      %25 = broadcast %24 {shape = [170,3,100], axes = [1]} : f32[170,3,100]
      %26 = subtract %23, %25 : f32[170,3,100]
      %27 = multiply %26, %26 : f32[170,3,100]
      %28 = reduce_sum %27 {axes = [0,2]} : f32[3]
      %29 = reduce_sum %23 {axes = [0,2]} : f32[3]
      %30 = reduce_max %26 {axes = [0,2]} : f32[3]
      %31 = subtract %28, %24 : f32[3]
      return %31, %29, %30
    }
  } : f32[3], f32[3], f32[3]
  return %10, %11, %12, %13, %14, %15, %16, %20, %21, %22
}
