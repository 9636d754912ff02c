// checks bits
graph @main(%0: s32[3,5,2], %1: s32[]) -> (s32[3,2]) {
  %2 = reduce %0, %1 {axes = [1]} {
    combine(%3: s32[], %4: s32[]) {
      %5 = less %3, %4 : u8[]
      %6 = cond %5, %3, %4 {
        true(%7: s32[], %8: s32[]) {
          %9 = add %7, %8 : s32[]
          return %9
        }
        false(%10: s32[], %11: s32[]) {
          %12 = subtract %10, %11 : s32[]
          return %12
        }
      } : s32[]
      return %6
    }
  } : s32[3,2]
  return %2
}
