// same passes: fuse
graph @main(%0: f32[4,8]) -> (f32[4,8]) {
  %1 = reduce_max %0 {axes = [1]} : f32[4]
  %2 = broadcast %1 {shape = [4,8], axes = [0]} : f32[4,8]
  %3 = subtract %0, %2 : f32[4,8]
  %4 = exp %3 : f32[4,8]
  %5 = reduce_sum %4 {axes = [1]} : f32[4]
  %6 = broadcast %5 {shape = [4,8], axes = [0]} : f32[4,8]
  %7 = divide %4, %6 : f32[4,8]
  return %7
}
