// checks bits
graph @main(%0: s32[5]) -> (s32[5], s32[5], s32[5]) {
  %1 = negate %0 : s32[5]
  return %1, %1, %0
}
