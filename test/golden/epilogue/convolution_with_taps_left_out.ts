// checks bits
// counts: steps 1, epilogues 1
// Taps between the elements are left out, and results in which they matter are computed again before the epilogue.
graph @main(%0: f32[1,2,90,8], %1: f32[1,3,8,512], %2: f32[512]) -> (f32[1,2,90,512]) {
  %3 = conv %0, %1 {strides = [1,2], low = [0,1], high = [0,1], input_dilation = [1,2], kernel_dilation = [1,1], groups = 1} : f32[1,2,90,512]
  %4 = broadcast %2 {shape = [1,2,90,512], axes = [3]} : f32[1,2,90,512]
  %5 = is_nan %3 : u8[1,2,90,512]
  %6 = select %5, %4, %3 : f32[1,2,90,512]
  return %6
}
