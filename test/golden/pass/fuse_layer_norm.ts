// checks passes: normalize,dots,fuse
// A layer norm is one kernel.
graph @main(%0: f32[3,8], %1: f32[8], %2: f32[8]) -> (f32[3,8]) {
  %3 = reduce_sum %0 {axes = [1]} : f32[3]
  %4 = constant 8.0 : f32[3]
  %5 = divide %3, %4 : f32[3]
  %6 = broadcast %5 {shape = [3,8], axes = [0]} : f32[3,8]
  %7 = subtract %0, %6 : f32[3,8]
  %8 = multiply %7, %7 : f32[3,8]
  %9 = reduce_sum %8 {axes = [1]} : f32[3]
  %10 = divide %9, %4 : f32[3]
  %11 = constant 1e-05 : f32[3]
  %12 = add %10, %11 : f32[3]
  %13 = sqrt %12 : f32[3]
  %14 = broadcast %13 {shape = [3,8], axes = [0]} : f32[3,8]
  %15 = divide %7, %14 : f32[3,8]
  %16 = broadcast %1 {shape = [3,8], axes = [1]} : f32[3,8]
  %17 = multiply %15, %16 : f32[3,8]
  %18 = broadcast %2 {shape = [3,8], axes = [1]} : f32[3,8]
  %19 = add %17, %18 : f32[3,8]
  return %19
}
