// passes: dce
graph @main(%0: f32[3], %1: s32[]) -> (s32[]) {
  %2 = exp %0 : f32[3]
  %3, %4 = while %1, %2 {
    condition(%5: s32[], %6: f32[3]) {
      %7 = tanh %6 : f32[3]
      %8 = constant 3 : s32[]
      %9 = less %5, %8 : u8[]
      return %9
    }
    body(%10: s32[], %11: f32[3]) {
      %12 = add %10, %10 : s32[]
      return %12, %11
    }
  } : s32[], f32[3]
  %13 = negate %4 : f32[3]
  return %3
}
