// same passes: pipeline
// also passes: normalize,pipeline
// An op that is dead.
graph @main(%0: f32[8]) -> (f32[8]) {
  %1 = tanh %0 : f32[8]
  %2 = exp %0 : f32[8]
  return %1
}
