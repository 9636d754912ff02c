// checks bits
graph @main(%0: f32[]) -> (s32[], f32[]) {
  %1 = constant 0 : s32[]
  %2, %3 = while %1, %0 {
    condition(%4: s32[], %5: f32[]) {
      %6 = constant 100 : s32[]
      %7 = less %4, %6 : u8[]
      return %7
    }
    body(%8: s32[], %9: f32[]) {
      %10 = constant 1 : s32[]
      %11 = add %8, %10 : s32[]
      %12 = constant 0.5 : f32[]
      %13 = multiply %9, %12 : f32[]
      %14 = add %13, %12 : f32[]
      return %11, %14
    }
  } : s32[], f32[]
  return %2, %3
}
