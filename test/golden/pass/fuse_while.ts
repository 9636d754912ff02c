// passes: fuse
graph @main(%0: s32[], %1: f32[3]) -> (f32[3]) {
  %2, %3 = while %0, %1 {
    condition(%4: s32[], %5: f32[3]) {
      %6 = constant 3 : s32[]
      %7 = less %4, %6 : u8[]
      return %7
    }
    body(%8: s32[], %9: f32[3]) {
      %10 = constant 1 : s32[]
      %11 = add %8, %10 : s32[]
      %12 = tanh %9 : f32[3]
      %13 = multiply %12, %9 : f32[3]
      return %11, %13
    }
  } : s32[], f32[3]
  return %3
}
