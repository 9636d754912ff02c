// checks bits passes: normalize,fuse,launches
// Short rows of neighbours that are apart from the next row are copied, and groups of the copy reduced. Long rows, few rows, and those of 11 and 13 stay rows.
graph @main(%0: f32[1500,5], %1: f64[3000,7], %2: s32[4,2048,5], %3: u8[5000,9], %4: bf16[4000,20], %5: f32[2000,12], %6: f32[700,5], %7: f64[3000,9], %8: f32[60,70,3,4]) -> (f32[1500], f64[3000], s32[4,2048], u8[5000], s32[4000], f32[2000], f32[700], f64[3000], f32[60,70,3], f32[60,70]) {
  %10 = slice %0 {start = [0,1], limit = [1500,3], stride = [1,1]} : f32[1500,2]
  %11 = reduce_sum %10 {axes = [1]} : f32[1500]
  %12 = slice %1 {start = [0,0], limit = [3000,5], stride = [1,1]} : f64[3000,5]
  %13 = reduce_max %12 {axes = [1]} : f64[3000]
  %14 = slice %2 {start = [0,0,3], limit = [4,2048,5], stride = [1,1,1]} : s32[4,2048,2]
  %15 = argmin %14 {axis = 2, high = false} : s32[4,2048]
  %16 = slice %3 {start = [0,1], limit = [5000,9], stride = [1,1]} : u8[5000,8]
  %17 = reduce_min %16 {axes = [1]} : u8[5000]
  %18 = slice %4 {start = [0,0], limit = [4000,8], stride = [1,1]} : bf16[4000,8]
  %19 = argmax %18 {axis = 1, high = true} : s32[4000]
  %20 = slice %5 {start = [0,0], limit = [2000,11], stride = [1,1]} : f32[2000,11]
  %21 = reduce_sum %20 {axes = [1]} : f32[2000]
  %22 = slice %6 {start = [0,0], limit = [700,2], stride = [1,1]} : f32[700,2]
  %23 = reduce_sum %22 {axes = [1]} : f32[700]
  %24 = slice %7 {start = [0,0], limit = [3000,8], stride = [1,1]} : f64[3000,8]
  %25 = reduce_sum %24 {axes = [1]} : f64[3000]
  %26 = slice %8 {start = [0,0,0,0], limit = [60,70,3,3], stride = [1,1,1,1]} : f32[60,70,3,3]
  %27 = reduce_product %26 {axes = [3]} : f32[60,70,3]
  %28 = slice %8 {start = [0,0,0,1], limit = [60,70,3,3], stride = [1,1,1,1]} : f32[60,70,3,2]
  %29 = reduce_sum %28 {axes = [2,3]} : f32[60,70]
  return %11, %13, %15, %17, %19, %21, %23, %25, %27, %29
}
