// passes: combine
// sends: 1 collective, 2097152 bytes
graph @main mesh @mesh ["model"=4] partitioned coordinates (%0: f32[8000,256] sharded [[0],[]], %1: s32[64,32], %2: s32[1]) -> (f32[64,32,256] sharded [[],[],[]]) {
  %3 = slice %2 {start = [0], limit = [1], stride = [1]} : s32[1]
  %4 = reshape %3 {shape = []} : s32[]
  %5 = constant 8000 : s32[]
  %6 = multiply %4, %5 : s32[]
  %7 = broadcast %6 {shape = [64,32], axes = []} : s32[64,32]
  %8 = subtract %1, %7 : s32[64,32]
  %9 = constant 0 : s32[64,32]
  %10 = greater_equal %8, %9 : u8[64,32]
  %11 = constant 8000 : s32[64,32]
  %12 = less %8, %11 : u8[64,32]
  %13 = logical_and %10, %12 : u8[64,32]
  %14 = constant 0 : s32[64,32]
  %15 = max %8, %14 : s32[64,32]
  %16 = constant 7999 : s32[64,32]
  %17 = min %15, %16 : s32[64,32]
  %18 = take %0, %17 {axis = 0} : f32[64,32,256]
  %19 = reshape %13 {shape = [64,32,1]} : u8[64,32,1]
  %20 = broadcast %19 {shape = [64,32,256], axes = [0,1,2]} : u8[64,32,256]
  %21 = constant 0.0 : f32[64,32,256]
  %22 = select %20, %18, %21 : f32[64,32,256]
  %23 = all_reduce_sum %22 {axes = [0]} : f32[64,32,256]
  return %23
}
