// checks bits
// counts: steps 1, epilogues 1
// A bias and an activation run on the features of each group.
graph @main(%0: f32[1,4,14,128], %1: f32[3,3,128,288], %2: f32[288]) -> (f32[1,4,14,288]) {
  %3 = conv %0, %1 {strides = [1,1], low = [1,1], high = [1,1], input_dilation = [1,1], kernel_dilation = [1,1], groups = 1} : f32[1,4,14,288]
  %4 = broadcast %2 {shape = [1,4,14,288], axes = [3]} : f32[1,4,14,288]
  %5 = add %3, %4 : f32[1,4,14,288]
  %6 = constant 0.0 : f32[1,4,14,288]
  %7 = max %5, %6 : f32[1,4,14,288]
  return %7
}
