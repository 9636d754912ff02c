// fails
graph @main(%0: f32[2,3], %1: s32[2,3]) -> (f32[2,3]) {
  %2 = add %0, %1 : f32[2,3]
  return %2
}
