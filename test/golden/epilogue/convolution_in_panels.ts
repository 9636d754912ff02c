// checks bits of plain
// counts: steps 1, epilogues 1
// The features are computed group by group, and a softmax over them runs after the last group.
graph @main(%0: f32[1,7,14,128], %1: f32[3,3,128,288]) -> (f32[1,7,14,288]) {
  %2 = conv %0, %1 {strides = [1,1], low = [1,1], high = [1,1], input_dilation = [1,1], kernel_dilation = [1,1], groups = 1} : f32[1,7,14,288]
  %3 = reduce_max %2 {axes = [3]} : f32[1,7,14]
  %4 = broadcast %3 {shape = [1,7,14,288], axes = [0,1,2]} : f32[1,7,14,288]
  %5 = subtract %2, %4 : f32[1,7,14,288]
  %6 = exp %5 : f32[1,7,14,288]
  %7 = reduce_sum %6 {axes = [3]} : f32[1,7,14]
  %8 = broadcast %7 {shape = [1,7,14,288], axes = [0,1,2]} : f32[1,7,14,288]
  %9 = divide %6, %8 : f32[1,7,14,288]
  return %9
}
