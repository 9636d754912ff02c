// checks bits passes: launches
graph @main(%0: f32[40000], %1: f16[2,32768], %2: bf16[20000,3], %3: s8[17000]) -> (f32[], f16[2], bf16[3], u8[]) {
  %4 = reduce_sum %0 {axes = [0]} : f32[]
  %5 = reduce_sum %1 {axes = [1]} : f16[2]
  %6 = reduce_product %2 {axes = [0]} : bf16[3]
  %7 = reduce_any %3 {axes = [0]} : u8[]
  return %4, %5, %6, %7
}
