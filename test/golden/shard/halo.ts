// passes: report
graph @t mesh [4] (%x: f32[8,64,16] sharded [[],[0],[]], %k: f32[5,16,32]) -> (f32[8,64,32], f32[8,32,16], f32[8,128,16]) {
  %1 = conv %x, %k {strides = [1], low = [2], high = [2], input_dilation = [1], kernel_dilation = [1], groups = 1} : f32[8,64,32]
  %2 = slice %x {start = [0,16,0], limit = [8,48,16], stride = [1,1,1]} : f32[8,32,16]
  %3 = reverse %x {axes = [1]} : f32[8,64,16]
  %4 = concatenate %x, %3 {axis = 1} : f32[8,128,16]
  return %1, %2, %4
}
