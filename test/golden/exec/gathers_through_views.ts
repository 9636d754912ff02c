// checks bits
// counts: steps 4, kernels 4, bytes of temporaries 0
// A gather reads through slices, transposes and reversals of memory, with its index clamped to the view.
graph @main(%0: f32[9,14], %1: s32[4], %2: s64[3,2], %3: s16[20,7], %4: u8[33,5], %5: s32[3,7]) -> (f32[4,4], f32[9,3,2], s16[3,7], u8[4,5]) {
  %6 = slice %0 {start = [1,3], limit = [8,11], stride = [2,2]} : f32[4,4]
  %7 = reverse %6 {axes = [0]} : f32[4,4]
  %8 = take %7, %1 {axis = 0} : f32[4,4]
  %9 = transpose %0 {axes = [1,0]} : f32[14,9]
  %10 = slice %9 {start = [2,0], limit = [13,9], stride = [1,1]} : f32[11,9]
  %11 = transpose %10 {axes = [1,0]} : f32[9,11]
  %12 = take %11, %2 {axis = 1} : f32[9,3,2]
  %13 = slice %3 {start = [2,0], limit = [20,7], stride = [3,1]} : s16[6,7]
  %14 = reverse %13 {axes = [0,1]} : s16[6,7]
  %15 = take_along_axis %14, %5 {axis = 0} : s16[3,7]
  %16 = slice %4 {start = [1,0], limit = [33,5], stride = [4,1]} : u8[8,5]
  %17 = take %16, %1 {axis = 0} : u8[4,5]
  return %8, %12, %15, %17
}
