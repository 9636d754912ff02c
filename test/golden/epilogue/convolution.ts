// checks bits
// counts: steps 1, epilogues 1
// A bias and an activation run on each part of the result.
graph @main(%0: f32[2,20,20,16], %1: f32[3,3,16,32], %2: f32[32]) -> (f32[2,20,20,32]) {
  %3 = conv %0, %1 {strides = [1,1], low = [1,1], high = [1,1], input_dilation = [1,1], kernel_dilation = [1,1], groups = 1} : f32[2,20,20,32]
  %4 = broadcast %2 {shape = [2,20,20,32], axes = [3]} : f32[2,20,20,32]
  %5 = add %3, %4 : f32[2,20,20,32]
  %6 = constant 0.0 : f32[2,20,20,32]
  %7 = max %5, %6 : f32[2,20,20,32]
  return %7
}
