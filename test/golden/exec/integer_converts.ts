// checks bits
// Of floats to integers: both ends, and NaN.
graph @main(%0: f64[999], %1: f32[999])
    -> (s32[999], s16[999], s8[999], u8[999], u32[999], s64[999], s32[999], s8[999], u16[999]) {
  %2 = convert %0 : s32[999]
  %3 = convert %0 : s16[999]
  %4 = convert %0 : s8[999]
  %5 = convert %0 : u8[999]
  %6 = convert %0 : u32[999]
  %7 = convert %0 : s64[999]
  %8 = convert %1 : s32[999]
  %9 = convert %1 : s8[999]
  %10 = convert %1 : u16[999]
  return %2, %3, %4, %5, %6, %7, %8, %9, %10
}
