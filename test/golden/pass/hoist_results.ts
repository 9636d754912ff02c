// checks bits passes: hoist
// Of a factorization before the loop only the second result is read, by another op before the loop.
graph @main(%0: f32[8,8], %1: f32[8,8]) -> (f32[8,8]) {
  %2 = constant 0 : s32[]
  %3, %4, %5 = while %2, %0, %1 {
    condition(%6: s32[], %7: f32[8,8], %8: f32[8,8]) {
      %9 = constant 3 : s32[]
      %10 = less %6, %9 : u8[]
      return %10
    }
    body(%11: s32[], %12: f32[8,8], %13: f32[8,8]) {
      %14 = constant 1 : s32[]
      %15 = add %11, %14 : s32[]
      %16, %17 = qr %12 {full = false} : f32[8,8], f32[8,8]
      %18 = dot_general %17, %17 {lhs_contract = [1], lhs_batch = [], rhs_contract = [0], rhs_batch = []} : f32[8,8]
      %19 = add %13, %18 : f32[8,8]
      return %15, %12, %19
    }
  } : s32[], f32[8,8], f32[8,8]
  return %5
}
