// checks bits
graph @main(%0: f32[1,257], %1: bf16[31,1,5], %2: f64[1,129,1], %3: s8[1,65], %4: f16[63,1], %5: u64[7,1,9], %6: f32[1,127]) -> (f32[257], f32[257], f32[257], bf16[31,5], s64[31,5], f64[129], f64[129], f64[129], s8[65], s32[65], u8[65], f16[63], u8[63], u64[7,9], s32[7,9], f32[1,127], f32[127]) {
  %7 = reduce_sum %0 {axes = [0]} : f32[257]
  %8 = reduce_product %0 {axes = [0]} : f32[257]
  %9 = reduce_max %0 {axes = [0]} : f32[257]
  %10 = reduce_sum %1 {axes = [1]} : bf16[31,5]
  %11 = argmin %1 {axis = 1, high = false} : s64[31,5]
  %12 = reduce_sum %2 {axes = [0,2]} : f64[129]
  %13 = reduce_min %2 {axes = [0,2]} : f64[129]
  %14 = reduce_product %2 {axes = [0,2]} : f64[129]
  %15 = reduce_sum %3 {axes = [0]} : s8[65]
  %16 = argmax %3 {axis = 0, high = true} : s32[65]
  %17 = reduce_any %3 {axes = [0]} : u8[65]
  %18 = reduce_max %4 {axes = [1]} : f16[63]
  %19 = reduce_all %4 {axes = [1]} : u8[63]
  %20 = reduce_min %5 {axes = [1]} : u64[7,9]
  %21 = argmax %5 {axis = 1, high = false} : s32[7,9]
  %22 = reduce_max %6 {axes = [0]} : f32[127]
  %23 = reshape %22 {shape = [1,127]} : f32[1,127]
  %24 = subtract %6, %23 : f32[1,127]
  %25 = exp %24 : f32[1,127]
  %26 = reduce_sum %25 {axes = [0]} : f32[127]
  return %7, %8, %9, %10, %11, %12, %13, %14, %15, %16, %17, %18, %19, %20, %21, %25, %26
}
