// checks passes: normalize,dots,fuse
// Reductions before few columns join the elementwise ops of their rows, if the columns can take turns in vectors.
graph @main(%0: f32[3,5,2], %1: f32[3,5,3]) -> (f32[3,5,2], f32[3,5,3]) {
  %2 = reduce_max %0 {axes = [1]} : f32[3,2]
  %3 = broadcast %2 {shape = [3,5,2], axes = [0,2]} : f32[3,5,2]
  %4 = subtract %0, %3 : f32[3,5,2]
  %5 = exp %4 : f32[3,5,2]
  %6 = reduce_sum %5 {axes = [1]} : f32[3,2]
  %7 = broadcast %6 {shape = [3,5,2], axes = [0,2]} : f32[3,5,2]
  %8 = divide %5, %7 : f32[3,5,2]
  %9 = reduce_max %1 {axes = [1]} : f32[3,3]
  %10 = broadcast %9 {shape = [3,5,3], axes = [0,2]} : f32[3,5,3]
  %11 = subtract %1, %10 : f32[3,5,3]
  return %8, %11
}
