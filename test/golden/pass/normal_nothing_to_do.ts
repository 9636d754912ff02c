// same passes: pipeline
// also passes: normalize,pipeline
graph @main(%0: f32[8], %1: f32[8]) -> (f32[8]) {
  %2 = add %0, %1 : f32[8]
  %3 = tanh %2 : f32[8]
  %4 = multiply %3, %2 : f32[8]
  return %4
}
