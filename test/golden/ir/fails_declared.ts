// fails
graph @main(%0: f32[2,3]) -> (f32[3,2]) {
  %1 = transpose %0 {axes = [1,0]} : f32[2,3]
  return %1
}
