// same passes: cse,dce
graph @main(%0: f32[3], %1: f32[3]) -> (f32[3], f32[3], f32[3]) {
  %2 = add %0, %1 : f32[3]
  %3 = add %1, %0 : f32[3]
  %4 = constant 1.0 : f32[3]
  %5 = constant 1.0 : f32[3]
  %6 = subtract %2, %4 : f32[3]
  %7 = subtract %3, %5 : f32[3]
  %8 = subtract %5, %3 : f32[3]
  return %6, %7, %8
}
