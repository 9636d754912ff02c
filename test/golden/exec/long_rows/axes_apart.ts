// checks bits
// counts: bytes of temporaries 17600
// The first axis is long, so its reduction takes blocks. These reduce nothing but the first axis.
graph @main(%0: s16[17000,2,5], %1: f32[16500,3,4]) -> (s16[2], f32[3]) {
  %2 = reduce_sum %0 {axes = [0,2]} : s16[2]
  %3 = reduce_max %1 {axes = [0,2]} : f32[3]
  %4 = sqrt %3 : f32[3]
  return %2, %4
}
