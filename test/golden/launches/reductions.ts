// checks bits passes: launches
graph @main(%0: f32[4,100], %1: f32[100,4], %2: bf16[3,10,4], %3: f32[3,10,4], %4: f32[3,4], %5: f32[3,1], %6: f32[3,0], %7: f16[3,5], %8: f32[3,5]) -> (f32[4], f32[4], bf16[3,4], f32[10], f32[], f32[3], f32[3], s32[3], s64[]) {
  %9 = reduce_sum %0 {axes = [1]} : f32[4]
  %10 = reduce_sum %1 {axes = [0]} : f32[4]
  %11 = reduce_sum %2 {axes = [1]} : bf16[3,4]
  %12 = reduce_sum %3 {axes = [0,2]} : f32[10]
  %13 = reduce_sum %4 {axes = [0,1]} : f32[]
  %14 = reduce_sum %5 {axes = [1]} : f32[3]
  %15 = reduce_product %6 {axes = [1]} : f32[3]
  %16 = argmax %7 {axis = 1, high = true} : s32[3]
  %17 = argmin %8 {axis = -1, high = false} : s64[]
  return %9, %10, %11, %12, %13, %14, %15, %16, %17
}
