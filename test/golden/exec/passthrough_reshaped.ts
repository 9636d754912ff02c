// checks bits
graph @main(%0: s32[2,3]) -> (s32[6]) {
  %1 = reshape %0 {shape = [6]} : s32[6]
  return %1
}
