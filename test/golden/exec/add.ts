// checks bits
graph @main(%0: f32[1000], %1: f32[1000]) -> (f32[1000]) {
  %2 = add %0, %1 : f32[1000]
  return %2
}
