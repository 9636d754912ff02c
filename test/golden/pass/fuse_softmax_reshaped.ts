// checks passes: normalize,dots,fuse
// A softmax whose sums keep the reduced axis is one kernel.
graph @main(%0: f32[3,5]) -> (f32[3,5]) {
  %1 = reduce_max %0 {axes = [1]} : f32[3]
  %2 = reshape %1 {shape = [3,1]} : f32[3,1]
  %3 = broadcast %2 {shape = [3,5], axes = [0,1]} : f32[3,5]
  %4 = subtract %0, %3 : f32[3,5]
  %5 = exp %4 : f32[3,5]
  %6 = reduce_sum %5 {axes = [1]} : f32[3]
  %7 = reshape %6 {shape = [3,1]} : f32[3,1]
  %8 = broadcast %7 {shape = [3,5], axes = [0,1]} : f32[3,5]
  %9 = divide %5, %8 : f32[3,5]
  return %9
}
