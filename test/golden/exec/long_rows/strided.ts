// checks bits
graph @main(%0: s16[3,400003]) -> (s16[3,200002]) {
  %1 = slice %0 {start = [0,0], limit = [3,400003], stride = [1,2]} : s16[3,200002]
  %2 = reverse %1 {axes = [1]} : s16[3,200002]
  return %2
}
