// checks bits of plain
graph @main(%0: s32[60,41], %1: f32[41,60], %2: u8[17,80,33], %3: s32[41]) -> (s32[41,60], s32[41,60], s32[41,60], f32[60,41], u8[33,80,17], s32[41,60]) {
  %4 = transpose %0 {axes = [1,0]} : s32[41,60]
  %5 = reverse %4 {axes = [0]} : s32[41,60]
  %6 = reverse %4 {axes = [1]} : s32[41,60]
  %7 = reverse %4 {axes = [0,1]} : s32[41,60]
  %8 = transpose %1 {axes = [1,0]} : f32[60,41]
  %9 = reverse %8 {axes = [0]} : f32[60,41]
  %10 = multiply %9, %9 : f32[60,41]
  %11 = transpose %2 {axes = [2,1,0]} : u8[33,80,17]
  %12 = reverse %11 {axes = [0,1]} : u8[33,80,17]
  %13 = broadcast %3 {shape = [41,60], axes = [0]} : s32[41,60]
  %14 = add %5, %13 : s32[41,60]
  %15 = iota {axis = 0} : s32[41,60]
  %16 = add %14, %15 : s32[41,60]
  return %5, %6, %7, %10, %12, %16
}
