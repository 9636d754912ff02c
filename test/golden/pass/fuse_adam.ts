// checks passes: normalize,dots,fuse
// A step of Adam is one kernel.
graph @main(%0: f32[9], %1: f32[9], %2: f32[9], %3: f32[9]) -> (f32[9], f32[9], f32[9]) {
  %4 = constant 0.9 : f32[9]
  %5 = constant 0.1 : f32[9]
  %6 = multiply %1, %4 : f32[9]
  %7 = multiply %3, %5 : f32[9]
  %8 = add %6, %7 : f32[9]
  %9 = multiply %3, %3 : f32[9]
  %10 = multiply %9, %5 : f32[9]
  %11 = multiply %2, %4 : f32[9]
  %12 = add %10, %11 : f32[9]
  %13 = sqrt %12 : f32[9]
  %14 = divide %8, %13 : f32[9]
  %15 = multiply %14, %5 : f32[9]
  %16 = subtract %0, %15 : f32[9]
  return %16, %8, %12
}
