// checks bits
graph @main(%0: f32[0,3]) -> (f32[0,3]) {
  %1 = abs %0 : f32[0,3]
  return %1
}
