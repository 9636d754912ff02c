// checks bits passes: launches
// An argmax or argmin walks through rows whose elements two to four columns separate, one row after the other. Columns further apart, short rows and other reductions stay columns.
graph @main(%0: f32[3001,3], %1: f64[20000,2], %2: u8[5,600,4], %3: bf16[4,2050,3], %4: s32[40,40,2], %5: f32[2000,5], %6: s16[200,7,3]) -> (s32[3], s64[2], s32[5,4], s32[4,3], s32[40,2], s32[5], s32[200,3], f32[3]) {
  %10 = argmax %0 {axis = 0, high = false} : s32[3]
  %11 = argmin %1 {axis = 0, high = true} : s64[2]
  %12 = argmin %2 {axis = 1, high = false} : s32[5,4]
  %13 = argmax %3 {axis = 1, high = true} : s32[4,3]
  %14 = argmax %4 {axis = 1, high = false} : s32[40,2]
  %15 = argmax %5 {axis = 0, high = false} : s32[5]
  %16 = argmin %6 {axis = 1, high = false} : s32[200,3]
  %17 = reduce_max %0 {axes = [0]} : f32[3]
  return %10, %11, %12, %13, %14, %15, %16, %17
}
