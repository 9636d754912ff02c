// checks bits passes: launches
// Tiles follow each other as they lie in what is transposed, not in the result.
graph @main(%0: f32[33,3,40,20]) -> (f32[20,40,33,3], f32[40,3,20,33]) {
  %1 = transpose %0 {axes = [3,2,0,1]} : f32[20,40,33,3]
  %2 = transpose %0 {axes = [2,1,3,0]} : f32[40,3,20,33]
  return %1, %2
}
