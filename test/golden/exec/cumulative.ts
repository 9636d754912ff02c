// checks bits
graph @main(%0: f32[19,45]) -> (f32[19,45], f32[19,45]) {
  %1 = cumulative_sum %0 {axis = 1, reverse = false} : f32[19,45]
  %2 = cumulative_max %0 {axis = 0, reverse = true} : f32[19,45]
  return %1, %2
}
