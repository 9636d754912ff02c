// checks bits
// counts: steps 3
// Rows of four elements that are apart are copied once: the sum and the maximum then read several rows to a vector.
graph @main(%0: f32[3000,8]) -> (f32[3000], f32[3000]) {
  %1 = slice %0 {start = [0,1], limit = [3000,8], stride = [1,2]} : f32[3000,4]
  %2 = reduce_sum %1 {axes = [1]} : f32[3000]
  %3 = reduce_max %1 {axes = [1]} : f32[3000]
  return %2, %3
}
