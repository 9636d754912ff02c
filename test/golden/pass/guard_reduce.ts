// same passes: guard,dce
graph @main(%0: s32[2,2], %1: s32[], %2: s32[2,2], %18: c128[2,2], %60: u8[0,2]) -> (s32[2], s32[2], s32[2], c128[2], c128[2], s32[2], s32[2], s32[], u8[2], s32[2]) {
  %3 = reduce %0, %1 {axes = [0]} {
    combine(%4: s32[], %5: s32[]) {
      %6 = add %5, %4 : s32[]
      %7 = broadcast %6 {shape = [3], axes = []} : s32[3]
      %8 = reduce_sum %7 {axes = [0]} : s32[]
      return %8
    }
  } : s32[2]
  %13 = constant 1 : s32[]
  %9 = reduce %2, %13 {axes = [1]} {
    combine(%10: s32[], %11: s32[]) {
      %12 = multiply %10, %11 : s32[]
      return %12
    }
  } : s32[2]
  %14 = reduce %2, %1 {axes = [1]} {
    combine(%15: s32[], %16: s32[]) {
      %17 = max %15, %16 : s32[]
      return %17
    }
  } : s32[2]
  %19 = constant (0.0, 5.0) : c128[]
  %20 = reduce %18, %19 {axes = [1]} {
    combine(%21: c128[], %22: c128[]) {
      %23 = add %21, %22 : c128[]
      return %23
    }
  } : c128[2]
  %24 = constant (1.0, 0.0) : c128[]
  %25 = reduce %18, %24 {axes = [1]} {
    combine(%26: c128[], %27: c128[]) {
      %28 = multiply %26, %27 : c128[]
      return %28
    }
  } : c128[2]
  %127 = constant -1 : s32[]
  %128 = reduce %2, %127 {axes = [1]} {
    combine(%129: s32[], %130: s32[]) {
      %131 = bitwise_and %129, %130 : s32[]
      return %131
    }
  } : s32[2]
  %132 = reduce %2, %13 {axes = [0]} {
    combine(%133: s32[], %134: s32[]) {
      %135 = bitwise_and %134, %133 : s32[]
      return %135
    }
  } : s32[2]
  %136 = constant 0 : s32[]
  %137 = reduce %2, %136 {axes = [0,1]} {
    combine(%138: s32[], %139: s32[]) {
      %140 = bitwise_xor %138, %139 : s32[]
      return %140
    }
  } : s32[]
  %141 = constant 9 : u8[]
  %142 = reduce %60, %141 {axes = [0]} {
    combine(%143: u8[], %144: u8[]) {
      %145 = bitwise_or %143, %144 : u8[]
      return %145
    }
  } : u8[2]
  %146 = reduce %2, %136 {axes = [1]} {
    combine(%147: s32[], %148: s32[]) {
      %149 = subtract %147, %148 : s32[]
      return %149
    }
  } : s32[2]
  return %3, %9, %14, %20, %25, %128, %132, %137, %142, %146
}
