// checks bits
// A sort may not write over its donated operand, which it reads till the end.
graph @main(%0: f32[6]) -> (f32[6]) {
  %1 = sort %0 {axis = 0, descending = true} : f32[6]
  return %1
}
