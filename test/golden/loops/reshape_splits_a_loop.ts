// passes: loops
// Element i of the result is element (i / 3, i % 3) of what was transposed: a finer loop makes that affine.
graph @main(%0: f32[3,2]) -> (f32[6]) {
  %1 = transpose %0 {axes = [1,0]} : f32[2,3]
  %2 = reshape %1 {shape = [6]} : f32[6]
  %3 = exp %2 : f32[6]
  return %3
}
