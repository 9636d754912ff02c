// passes: loops
graph @main(%0: s16[10]) -> (s16[3]) {
  %1 = slice %0 {start = [1], limit = [9], stride = [3]} : s16[3]
  %2 = reverse %1 {axes = [0]} : s16[3]
  %3 = negate %2 : s16[3]
  return %3
}
