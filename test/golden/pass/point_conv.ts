// checks bits passes: normalize
// A convolution of one tap that reads the point itself is a product: of 16-bit floats, and of wider ones with few features. Strides, padding,
// groups, more features and integers stay convolutions.
graph @main(%0: f32[2,3,4,5], %1: f32[1,1,5,8], %2: f32[1,1,5,9], %3: bf16[2,7,5], %4: bf16[1,5,40], %5: f64[6,5], %6: f64[5,1], %7: f32[1,1,1,5], %8: s32[2,7,5], %9: s32[1,5,2]) -> (f32[2,3,4,8], f32[2,3,4,9], bf16[2,7,40], bf16[2,4,40], bf16[2,9,40], f64[6,1], f32[2,3,4,5], s32[2,7,2]) {
  %10 = conv %0, %1 {strides = [1,1], low = [0,0], high = [0,0], input_dilation = [1,1], kernel_dilation = [1,1], groups = 1} : f32[2,3,4,8]
  %11 = conv %0, %2 {strides = [1,1], low = [0,0], high = [0,0], input_dilation = [1,1], kernel_dilation = [1,1], groups = 1} : f32[2,3,4,9]
  %12 = conv %3, %4 {strides = [1], low = [0], high = [0], input_dilation = [1], kernel_dilation = [3], groups = 1} : bf16[2,7,40]
  %13 = conv %3, %4 {strides = [2], low = [0], high = [0], input_dilation = [1], kernel_dilation = [1], groups = 1} : bf16[2,4,40]
  %14 = conv %3, %4 {strides = [1], low = [1], high = [1], input_dilation = [1], kernel_dilation = [1], groups = 1} : bf16[2,9,40]
  %15 = conv %5, %6 {strides = [], low = [], high = [], input_dilation = [], kernel_dilation = [], groups = 1} : f64[6,1]
  %16 = conv %0, %7 {strides = [1,1], low = [0,0], high = [0,0], input_dilation = [1,1], kernel_dilation = [1,1], groups = 5} : f32[2,3,4,5]
  %17 = conv %8, %9 {strides = [1], low = [0], high = [0], input_dilation = [1], kernel_dilation = [1], groups = 1} : s32[2,7,2]
  return %10, %11, %12, %13, %14, %15, %16, %17
}
