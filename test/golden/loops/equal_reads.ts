// passes: loops
// Equal reads are one.
graph @main(%0: f32[5]) -> (f32[5], f32[5]) {
  %1 = multiply %0, %0 : f32[5]
  %2 = add %1, %0 : f32[5]
  return %1, %2
}
