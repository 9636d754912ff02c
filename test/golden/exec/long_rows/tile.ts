// checks bits
graph @main(%0: s32[40003,17]) -> (s32[17,40003]) {
  %1 = transpose %0 {axes = [1,0]} : s32[17,40003]
  return %1
}
