// checks bits passes: normalize,fuse,launches
graph @main(%0: u8[33,1029], %1: s8[50001], %2: s16[17,2049], %3: u16[2,3,8191], %4: u8[4,16391], %5: s8[5,9000], %6: bf16[33,1100], %7: u8[40000]) -> (u8[33], s8[], s16[17], u16[2], u16[2], u8[33], u8[4], u8[4], s8[], s8[5], bf16[33], u8[], u8[], s16[], s32[]) {
  %8 = reduce_max %0 {axes = [1]} : u8[33]
  %9 = reduce_min %1 {axes = [0]} : s8[]
  %10 = reduce_sum %2 {axes = [1]} : s16[17]
  %11 = reduce_max %3 {axes = [1,2]} : u16[2]
  %12 = reduce_product %3 {axes = [1,2]} : u16[2]
  %13 = reduce_any %0 {axes = [1]} : u8[33]
  %14 = reduce_all %4 {axes = [1]} : u8[4]
  %15 = reduce_min %4 {axes = [1]} : u8[4]
  %16 = slice %5 {start = [0,0], limit = [5,9000], stride = [2,1]} : s8[3,9000]
  %17 = reduce_max %16 {axes = [0,1]} : s8[]
  %18 = reverse %5 {axes = [1]} : s8[5,9000]
  %19 = reduce_sum %18 {axes = [1]} : s8[5]
  %20 = reduce_max %6 {axes = [1]} : bf16[33]
  %21 = reduce_max %7 {axes = [0]} : u8[]
  %22 = reduce_min %7 {axes = [0]} : u8[]
  %23 = reduce_max %2 {axes = [0,1]} : s16[]
  %24 = convert %1 : s32[50001]
  %25 = reduce_sum %24 {axes = [0]} : s32[]
  return %8, %9, %10, %11, %12, %13, %14, %15, %17, %19, %20, %21, %22, %23, %25
}
