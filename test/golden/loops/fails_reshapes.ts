// fails passes: loops
// After a transposition the 6 elements are no rows of 4.
graph @main(%0: f32[3,4]) -> (f32[2,6]) {
  %1 = transpose %0 {axes = [1,0]} : f32[4,3]
  %2 = reshape %1 {shape = [2,6]} : f32[2,6]
  %3 = transpose %2 {axes = [1,0]} : f32[6,2]
  %4 = reshape %3 {shape = [4,3]} : f32[4,3]
  %5 = reshape %4 {shape = [2,6]} : f32[2,6]
  return %5
}
