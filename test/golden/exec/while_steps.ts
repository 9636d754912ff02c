// checks bits
// Swapped, passed through, duplicated and updated loop variables.
graph @main(%0: s32[40], %1: s32[40], %2: s32[40]) -> (s32[], s32[40], s32[40], s32[40], s32[40]) {
  %3 = constant 0 : s32[]
  %4, %5, %6, %7, %8 = while %3, %0, %1, %2, %0 {
    condition(%9: s32[], %10: s32[40], %11: s32[40], %12: s32[40], %13: s32[40]) {
      %14 = constant 7 : s32[]
      %15 = less %9, %14 : u8[]
      return %15
    }
    body(%16: s32[], %17: s32[40], %18: s32[40], %19: s32[40], %20: s32[40]) {
      %21 = constant 1 : s32[]
      %22 = add %16, %21 : s32[]
      %23 = add %20, %17 : s32[40]
      %24 = reverse %23 {axes = [0]} : s32[40]
      return %22, %18, %17, %19, %24
    }
  } : s32[], s32[40], s32[40], s32[40], s32[40]
  return %4, %5, %6, %7, %8
}
