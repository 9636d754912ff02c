// checks bits passes: launches
// Sums of floats over dims with a kept one between them: a thread joins the pieces of a row, or what a block has of them, unless they are short or not contiguous.
graph @main(%0: f32[7,31,101], %1: f64[5,3,2,9,33], %2: bf16[3,129,16], %3: f16[17,3,64], %4: f32[170,2,100], %5: f32[9,5,15], %6: f32[7,5,40,2], %7: f32[31]) -> (f32[31], f64[3,9], bf16[129], f16[3], f32[2], f32[5], f32[5,2], f32[31], f32[31], f32[31]) {
  %10 = reduce_sum %0 {axes = [0,2]} : f32[31]
  %11 = reduce_sum %1 {axes = [0,2,4]} : f64[3,9]
  %12 = reduce_sum %2 {axes = [0,2]} : bf16[129]
  %13 = reduce_product %3 {axes = [0,2]} : f16[3]
  %14 = reduce_sum %4 {axes = [0,2]} : f32[2]
  %15 = reduce_sum %5 {axes = [0,2]} : f32[5]
  %16 = reduce_sum %6 {axes = [0,2]} : f32[5,2]
  %20, %21, %22 = fusion %0, %7 {kind = 0} {
    body(%23: f32[7,31,101], %24: f32[31]) {
      %25 = broadcast %24 {shape = [7,31,101], axes = [1]} : f32[7,31,101]
      %26 = subtract %23, %25 : f32[7,31,101]
      %27 = multiply %26, %26 : f32[7,31,101]
      %28 = reduce_sum %27 {axes = [0,2]} : f32[31]
      %29 = reduce_sum %23 {axes = [0,2]} : f32[31]
      %30 = reduce_max %26 {axes = [0,2]} : f32[31]
      %31 = subtract %28, %24 : f32[31]
      return %31, %29, %30
    }
  } : f32[31], f32[31], f32[31]
  return %10, %11, %12, %13, %14, %15, %16, %20, %21, %22
}
