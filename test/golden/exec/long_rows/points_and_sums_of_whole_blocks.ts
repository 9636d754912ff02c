// checks bits
// A result for each point, and reductions of it over a row of several blocks: one loop.
graph @main(%0: f32[49152]) -> (f32[49152], f32[], s32[]) {
  %1 = abs %0 : f32[49152]
  %2 = subtract %0, %1 : f32[49152]
  %3 = reduce_sum %2 {axes = [0]} : f32[]
  %4 = argmax %2 {axis = 0, high = true} : s32[]
  return %2, %3, %4
}
