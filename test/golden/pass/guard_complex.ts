// same passes: guard,dce
graph @main(%0: c128[2], %1: c64[3]) -> (f64[2], s32[3], f32[2], c128[3]) {
  %2 = convert %0 : f64[2]
  %3 = convert %1 : s32[3]
  %4 = convert %0 : f32[2]
  %5 = convert %1 : c128[3]
  return %2, %3, %4, %5
}
