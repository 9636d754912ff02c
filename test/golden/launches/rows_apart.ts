// checks bits passes: launches
graph @main(%0: f32[65,31,33], %1: s32[7,31,3,101], %2: u8[257,5,7], %3: bf16[5,129,16], %4: f32[3,17,2], %5: s8[67,2,257], %6: f64[9,2,65,3], %7: u64[2,3,2,5], %8: f16[17001,2,3]) -> (f32[31], s32[31,101], u8[5], bf16[129], f32[17], s8[2], s8[2], u8[2], u8[2], f64[2,3], f64[2,65], u64[3,5], f16[2], f32[31], f64[2]) {
  %9 = reduce_max %0 {axes = [0,2]} : f32[31]
  %10 = reduce_sum %1 {axes = [0,2]} : s32[31,101]
  %11 = reduce_min %2 {axes = [0,2]} : u8[5]
  %12 = reduce_max %3 {axes = [0,2]} : bf16[129]
  %13 = reduce_min %4 {axes = [0,2]} : f32[17]
  %14 = reduce_product %5 {axes = [0,2]} : s8[2]
  %15 = reduce_sum %5 {axes = [0,2]} : s8[2]
  %16 = reduce_any %5 {axes = [0,2]} : u8[2]
  %17 = reduce_all %5 {axes = [0,2]} : u8[2]
  %18 = reduce_max %6 {axes = [0,2]} : f64[2,3]
  %19 = reduce_min %6 {axes = [0,3]} : f64[2,65]
  %20 = reduce_sum %7 {axes = [0,2]} : u64[3,5]
  %21 = reduce_min %8 {axes = [0,2]} : f16[2]
  %22 = exp %0 : f32[65,31,33]
  %23 = reduce_min %22 {axes = [0,2]} : f32[31]
  %24 = reduce_max %6 {axes = [0,2,3]} : f64[2]
  return %9, %10, %11, %12, %13, %14, %15, %16, %17, %18, %19, %20, %21, %23, %24
}
