// same passes: fuse
graph @main(%0: f32[9], %1: f32[9], %2: f32[9]) -> (f32[9], f32[9]) {
  %3 = constant 0.9 : f32[9]
  %4 = multiply %1, %3 : f32[9]
  %5 = add %4, %2 : f32[9]
  %6 = constant 0.01 : f32[9]
  %7 = multiply %5, %6 : f32[9]
  %8 = subtract %0, %7 : f32[9]
  return %8, %5
}
