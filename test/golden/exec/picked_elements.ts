// checks bits of plain
// Elements of a line that indices select: sixteen are compared with the bounds at once, and clamped where some are outside.
graph @main(%0: f32[300], %1: s8[1000], %2: u8[37], %3: u64[50], %4: s64[33], %5: f16[3,40], %6: s32[1040], %7: u32[17], %8: f64[1,1,2], %9: s16[47], %10: bf16[12,4]) -> (f32[1000], f32[37], f32[50], f32[33], f16[3,1040], f32[17], f64[1,1,1040], f32[47], f32[15], f32[16], bf16[12,1040], bf16[33]) {
  %11 = take %0, %1 {axis = 0} : f32[1000]
  %12 = take %0, %2 {axis = 0} : f32[37]
  %13 = take %0, %3 {axis = 0} : f32[50]
  %14 = take %0, %4 {axis = 0} : f32[33]
  %15 = take %5, %6 {axis = 1} : f16[3,1040]
  %16 = take %0, %7 {axis = 0} : f32[17]
  %17 = take %8, %6 {axis = 2} : f64[1,1,1040]
  %18 = take %0, %9 {axis = 0} : f32[47]
  %19 = slice %6 {start = [3], limit = [18], stride = [1]} : s32[15]
  %20 = take %0, %19 {axis = 0} : f32[15]
  %21 = slice %6 {start = [0], limit = [32], stride = [2]} : s32[16]
  %22 = take %0, %21 {axis = 0} : f32[16]
  %23 = take %10, %6 {axis = 1} : bf16[12,1040]
  %24 = slice %10 {start = [0,1], limit = [12,2], stride = [1,1]} : bf16[12,1]
  %25 = reshape %24 {shape = [12]} : bf16[12]
  %26 = take %25, %4 {axis = 0} : bf16[33]
  return %11, %12, %13, %14, %15, %16, %17, %18, %20, %22, %23, %26
}
