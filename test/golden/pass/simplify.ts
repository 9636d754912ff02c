// same passes: simplify,dce
graph @main(%0: f32[2,3], %1: s32[2,3], %2: f16[2,3], %20: f32[3]) -> (f32[2,3], f32[2,3], s32[2,3], f16[2,3], f32[2,3], f32[3,2], f32[6], f32[2,3], f32[1,1]) {
  %3 = constant 1.0 : f32[2,3]
  %4 = multiply %0, %3 : f32[2,3]
  %5 = constant 0.0 : f32[2,3]
  %6 = add %0, %5 : f32[2,3]
  %7 = constant 0 : s32[2,3]
  %8 = add %7, %1 : s32[2,3]
  %9 = convert %2 : f32[2,3]
  %10 = convert %9 : f16[2,3]
  %11 = transpose %0 {axes = [1,0]} : f32[3,2]
  %12 = transpose %11 {axes = [1,0]} : f32[2,3]
  %13 = negate %11 : f32[3,2]
  %14 = negate %13 : f32[3,2]
  %15 = reshape %0 {shape = [3,2]} : f32[3,2]
  %16 = reshape %15 {shape = [6]} : f32[6]
  %17 = reshape %20 {shape = [1,3]} : f32[1,3]
  %18 = broadcast %17 {shape = [2,3], axes = [0,1]} : f32[2,3]
  %19 = slice %0 {start = [0,1], limit = [2,3], stride = [1,1]} : f32[2,2]
  %21 = slice %19 {start = [1,1], limit = [2,2], stride = [1,1]} : f32[1,1]
  return %4, %6, %8, %10, %12, %14, %16, %18, %21
}
