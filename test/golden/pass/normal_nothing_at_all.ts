// same passes: pipeline
// also passes: normalize,pipeline
graph @main(%0: f32[8]) -> (f32[8]) {
  return %0
}
