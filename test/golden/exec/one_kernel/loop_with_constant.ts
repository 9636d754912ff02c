// checks bits
// counts: kernels 1
// The initial value of a loop variable is a constant, for which there is no kernel.
graph @main(%0: f32[]) -> (s32[], f32[]) {
  %1 = constant 3 : s32[]
  %2, %3 = while %1, %0 {
    condition(%4: s32[], %5: f32[]) {
      %6 = constant 90 : s32[]
      %7 = less %4, %6 : u8[]
      return %7
    }
    body(%8: s32[], %9: f32[]) {
      %10 = constant 2 : s32[]
      %11 = add %8, %10 : s32[]
      %12 = multiply %9, %9 : f32[]
      return %11, %12
    }
  } : s32[], f32[]
  return %2, %3
}
