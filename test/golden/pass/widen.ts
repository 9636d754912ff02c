// same passes: widen,cse,dce
graph @main(%0: s4[3], %1: s4[3], %2: f8[2,3], %3: u4[3], %4: f8_e4m3fn[0]) -> (s4[3], u8[3], f8[2], u4[3], s4[3], f8_e4m3fn[], f8[2,3]) {
  %5 = add %0, %1 : s4[3]
  %6 = less %0, %1 : u8[3]
  %7 = reduce_sum %2 {axes = [1]} : f8[2]
  %8 = count_leading_zeros %3 : u4[3]
  %9 = select %6, %0, %5 : s4[3]
  %10 = reduce_max %4 {axes = [0]} : f8_e4m3fn[]
  %11 = sort %2 {axis = 1, descending = false} : f8[2,3]
  return %5, %6, %7, %8, %9, %10, %11
}
