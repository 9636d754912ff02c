// checks bits
// A part of an argument that is a result, that a loop reads, and with which a loop begins.
graph @main(%0: f32[6,8], %1: s32[]) -> (f32[2,8], f32[2,8], f32[3,8]) {
  %2 = slice %0 {start = [1,0], limit = [3,8], stride = [1,1]} : f32[2,8]
  %3 = slice %0 {start = [3,0], limit = [6,8], stride = [1,1]} : f32[3,8]
  %4 = reverse %3 {axes = [1]} : f32[3,8]
  %5, %6, %7 = while %1, %2, %3 {
    condition(%8: s32[], %9: f32[2,8], %10: f32[3,8]) {
      %11 = constant 3 : s32[]
      %12 = less %8, %11 : u8[]
      return %12
    }
    body(%13: s32[], %14: f32[2,8], %15: f32[3,8]) {
      %16 = constant 1 : s32[]
      %17 = add %13, %16 : s32[]
      %18 = cumulative_sum %15 {axis = 1, reverse = false} : f32[3,8]
      %19 = slice %18 {start = [0,0], limit = [2,8], stride = [1,1]} : f32[2,8]
      %20 = add %14, %19 : f32[2,8]
      %21 = sort %20 {axis = 1, descending = false} : f32[2,8]
      return %17, %21, %15
    }
  } : s32[], f32[2,8], f32[3,8]
  %22 = sort %2 {axis = 1, descending = true} : f32[2,8]
  return %6, %22, %7
}
