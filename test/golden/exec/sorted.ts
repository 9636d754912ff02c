// checks bits
graph @main(%0: f32[19,450]) -> (f32[19,450], s32[19,450]) {
  %1 = sort %0 {axis = 1, descending = false} : f32[19,450]
  %2 = argsort %1 {axis = 0, descending = true} : s32[19,450]
  return %1, %2
}
