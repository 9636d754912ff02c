// checks bits
graph @main(%0: f32[19,450]) -> (f32[19,7], s32[19,7]) {
  %1, %2 = top_k %0 {k = 7} : f32[19,7], s32[19,7]
  return %1, %2
}
