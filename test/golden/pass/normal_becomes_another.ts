// same passes: pipeline
// also passes: normalize,pipeline
// An op that becomes another op.
graph @main(%0: f32[2,3]) -> (f32[3,2]) {
  %1 = transpose %0 {axes = [1,0]} : f32[3,2]
  %2 = transpose %1 {axes = [1,0]} : f32[2,3]
  %3 = transpose %2 {axes = [1,0]} : f32[3,2]
  return %3
}
