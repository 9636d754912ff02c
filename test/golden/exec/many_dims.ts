// checks bits
// More dims than a kernel has, none of which can be merged.
graph @main(%0: f32[2,3,2,1,2,3,2,2,2,2]) -> (f32[2,2,2,2,3,2,1,2,3,2], f32[2,2,2,2,2]) {
  %1 = transpose %0 {axes = [9,8,7,6,5,4,3,2,1,0]} : f32[2,2,2,2,3,2,1,2,3,2]
  %2 = reduce_max %0 {axes = [1,3,5,7,9]} : f32[2,2,2,2,2]
  return %1, %2
}
