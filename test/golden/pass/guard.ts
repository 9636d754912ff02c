// same passes: guard,dce
graph @main(%0: s32[3], %1: s32[3], %2: u2[3,2], %3: s4[3], %4: f8[3], %5: u8[3]) -> (s32[3], s32[3], s32[3], u8[3], u2[3,2], s32[3,2], u2[6,2], u2[3], s4[3], f8[3]) {
  %6 = quotient %0, %1 : s32[3]
  %7 = remainder %0, %1 : s32[3]
  %8 = constant 3 : s32[3]
  %9 = quotient %0, %8 : s32[3]
  %10 = quotient %5, %5 : u8[3]
  %11 = sort %2 {axis = 1, descending = true} : u2[3,2]
  %12 = argsort %2 {axis = 1, descending = false} : s32[3,2]
  %13 = concatenate %2, %2 {axis = 0} : u2[6,2]
  %14 = reduce_max %2 {axes = [1]} : u2[3]
  %15 = population_count %3 : s4[3]
  %16 = atan %4 : f8[3]
  return %6, %7, %9, %10, %11, %12, %13, %14, %15, %16
}
