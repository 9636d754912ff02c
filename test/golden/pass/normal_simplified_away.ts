// same passes: pipeline
// also passes: normalize,pipeline
// An op that is simplified away.
graph @main(%0: s32[8]) -> (s32[8]) {
  %1 = negate %0 : s32[8]
  %2 = negate %1 : s32[8]
  return %2
}
