// same passes: pipeline
// also passes: normalize,pipeline
// The same op twice, at the end.
graph @main(%0: f32[8]) -> (f32[8], f32[8]) {
  %1 = tanh %0 : f32[8]
  %2 = exp %1 : f32[8]
  %3 = exp %1 : f32[8]
  return %2, %3
}
