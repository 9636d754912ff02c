// checks bits
// counts: steps 6, bytes of temporaries 0
// A concatenate or pad reads slices, transposes and reversals where they are: it makes no copy of them before.
graph @main(%0: f64[5,37], %1: u8[7,40], %2: s16[30,6], %3: f32[6,3], %4: f32[3,6], %5: s8[4,9]) -> (f64[5,37], u8[7,40], s16[36,6], f32[3,24], s8[6,7], f32[12,3]) {
  %6 = slice %0 {start = [0,0], limit = [5,28], stride = [1,1]} : f64[5,28]
  %7 = slice %0 {start = [0,28], limit = [5,37], stride = [1,1]} : f64[5,9]
  %8 = concatenate %7, %6 {axis = 1} : f64[5,37]
  %9 = slice %1 {start = [0,1], limit = [7,40], stride = [1,2]} : u8[7,20]
  %10 = reverse %1 {axes = [0,1]} : u8[7,40]
  %11 = slice %10 {start = [0,20], limit = [7,40], stride = [1,1]} : u8[7,20]
  %12 = concatenate %9, %11 {axis = 1} : u8[7,40]
  %13 = reverse %2 {axes = [0]} : s16[30,6]
  %14 = slice %2 {start = [2,0], limit = [14,6], stride = [2,1]} : s16[6,6]
  %15 = concatenate %13, %14 {axis = 0} : s16[36,6]
  %16 = transpose %3 {axes = [1,0]} : f32[3,6]
  %17 = negate %16 : f32[3,6]
  %18 = reverse %4 {axes = [1]} : f32[3,6]
  %19 = concatenate %16, %4, %17, %18 {axis = 1} : f32[3,24]
  %20 = slice %5 {start = [0,1], limit = [4,9], stride = [1,2]} : s8[4,4]
  %21 = constant 7 : s8[]
  %22 = pad %20, %21 {low = [1,0], high = [1,0], interior = [0,1]} : s8[6,7]
  %23 = slice %3 {start = [0,0], limit = [6,3], stride = [1,1]} : f32[6,3]
  %24 = reverse %23 {axes = [1]} : f32[6,3]
  %25 = concatenate %24, %3 {axis = 0} : f32[12,3]
  return %8, %12, %15, %19, %22, %25
}
