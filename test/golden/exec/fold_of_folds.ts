// checks bits
graph @main(%0: s32[7], %1: s32[], %2: s32[0,4], %3: s32[4,0]) -> (s32[], s32[4], s32[0]) {
  %4 = reduce %0, %1 {axes = [0]} {
    combine(%5: s32[], %6: s32[]) {
      %7 = broadcast %6 {shape = [3], axes = []} : s32[3]
      %8 = reduce %7, %5 {axes = [0]} {
        combine(%9: s32[], %10: s32[]) {
          %11 = subtract %10, %9 : s32[]
          return %11
        }
      } : s32[]
      return %8
    }
  } : s32[]
  %12 = reduce %2, %1 {axes = [0]} {
    combine(%13: s32[], %14: s32[]) {
      %15 = reshape %13 {shape = [1]} : s32[1]
      %16 = reshape %15 {shape = []} : s32[]
      return %16
    }
  } : s32[4]
  %17 = reduce %3, %1 {axes = [0]} {
    combine(%18: s32[], %19: s32[]) {
      %20 = reshape %19 {shape = [1]} : s32[1]
      %21 = reshape %20 {shape = []} : s32[]
      return %21
    }
  } : s32[0]
  return %4, %12, %17
}
