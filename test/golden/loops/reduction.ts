// passes: loops
// A reduction sets the loops. What it reduces is in the row, and what comes of it is not.
graph @main(%0: f32[4,7]) -> (f32[4]) {
  %1 = abs %0 : f32[4,7]
  %2 = reduce_sum %1 {axes = [1]} : f32[4]
  %3 = sqrt %2 : f32[4]
  return %3
}
