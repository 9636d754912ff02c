// checks bits
graph @main(%0: f32[], %1: f32[]) -> (f32[]) {
  %2 = multiply %0, %1 : f32[]
  return %2
}
