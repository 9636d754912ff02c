// checks bits passes: fuse
// The moments of groups of channels are repeated for each channel once, in a kernel of their own: the kernel over all
// elements then has rows of whole lines. Repeats of 128 elements stay in the kernel that reads them.
graph @main(%0: f32[2,4,8,32], %1: f32[2,8], %2: f32[2,8], %3: f32[32], %4: f32[2,4,8,256], %5: f32[2,32]) -> (f32[2,4,8,32], f32[2,4,8,32], f32[2,4,8,256], f32[2,32]) {
  %6 = broadcast %1 {shape = [2,8,4], axes = [0,1]} : f32[2,8,4]
  %7 = reshape %6 {shape = [2,32]} : f32[2,32]
  %8 = broadcast %7 {shape = [2,4,8,32], axes = [0,3]} : f32[2,4,8,32]
  %9 = subtract %0, %8 : f32[2,4,8,32]
  %10 = broadcast %2 {shape = [2,8,4], axes = [0,1]} : f32[2,8,4]
  %11 = reshape %10 {shape = [2,1,1,32]} : f32[2,1,1,32]
  %12 = reshape %3 {shape = [1,1,1,32]} : f32[1,1,1,32]
  %13 = broadcast %12 {shape = [2,1,1,32], axes = [0,1,2,3]} : f32[2,1,1,32]
  %14 = multiply %11, %13 : f32[2,1,1,32]
  %15 = broadcast %14 {shape = [2,4,8,32], axes = [0,1,2,3]} : f32[2,4,8,32]
  %16 = multiply %9, %15 : f32[2,4,8,32]
  %17 = exp %8 : f32[2,4,8,32]
  %18 = reduce_max %16 {axes = [3]} : f32[2,4,8]
  %19 = broadcast %18 {shape = [2,4,8,32], axes = [0,1,2]} : f32[2,4,8,32]
  %20 = add %17, %19 : f32[2,4,8,32]
  %21 = reshape %1 {shape = [2,2,4]} : f32[2,2,4]
  %22 = reduce_sum %21 {axes = [2]} : f32[2,2]
  %23 = broadcast %22 {shape = [2,2,128], axes = [0,1]} : f32[2,2,128]
  %24 = reshape %23 {shape = [2,256]} : f32[2,256]
  %25 = broadcast %24 {shape = [2,4,8,256], axes = [0,3]} : f32[2,4,8,256]
  %26 = add %4, %25 : f32[2,4,8,256]
  %27 = add %5, %7 : f32[2,32]
  return %16, %20, %26, %27
}
