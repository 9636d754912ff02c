// checks bits of plain
// Groups that are only moved: lines of a vector and more, whose last vector begins earlier, and of fewer groups than that.
graph @main(%0: s8[40,2,163], %1: f32[3,577], %2: s16[30,3,65], %3: f64[20,100,2], %4: u8[60,63,2], %5: f16[9,5,1031]) -> (s8[40,163,2], f32[577,3], s16[30,65,3], f64[20,2,100], u8[60,2,63], f16[9,1031,5], s8[40,163,2], f64[20,2,100], s8[40,163,2]) {
  %6 = transpose %0 {axes = [0,2,1]} : s8[40,163,2]
  %7 = transpose %1 {axes = [1,0]} : f32[577,3]
  %8 = transpose %2 {axes = [0,2,1]} : s16[30,65,3]
  %9 = transpose %3 {axes = [0,2,1]} : f64[20,2,100]
  %10 = transpose %4 {axes = [0,2,1]} : u8[60,2,63]
  %11 = transpose %5 {axes = [0,2,1]} : f16[9,1031,5]
  %12 = reverse %6 {axes = [2]} : s8[40,163,2]
  %13 = reverse %9 {axes = [1,2]} : f64[20,2,100]
  %14 = slice %6 {start = [0,97,0], limit = [40,163,2], stride = [1,1,1]} : s8[40,66,2]
  %15 = slice %6 {start = [0,0,0], limit = [40,97,2], stride = [1,1,1]} : s8[40,97,2]
  %16 = concatenate %14, %15 {axis = 1} : s8[40,163,2]
  return %6, %7, %8, %9, %10, %11, %12, %13, %16
}
