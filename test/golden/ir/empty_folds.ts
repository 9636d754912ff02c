// passes: verify
graph @main(%0: f8_e4m3fn[0,2], %1: f16[0,2], %2: f8_e4m3fn[3]) -> (f8_e4m3fn[2], f8_e4m3fn[2], f16[2], f8_e4m3fn[], f8_e4m3fn[3]) {
  %3 = reduce_min %0 {axes = [0]} : f8_e4m3fn[2]
  %4 = reduce_max %0 {axes = [0]} : f8_e4m3fn[2]
  %5 = reduce_min %1 {axes = [0]} : f16[2]
  %6 = reduce_sum %2 {axes = [0]} : f8_e4m3fn[]
  %7 = cumulative_min %2 {axis = 0, reverse = false} : f8_e4m3fn[3]
  return %3, %4, %5, %6, %7
}
