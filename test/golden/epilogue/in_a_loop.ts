// checks bits of plain
// counts: steps 1
// At the root there is the loop alone.
graph @main(%0: f32[40,40], %1: f32[40,40]) -> (s32[], f32[40,40]) {
  %2 = constant 0 : s32[]
  %3, %4, %5 = while %2, %0, %1 {
    condition(%6: s32[], %7: f32[40,40], %8: f32[40,40]) {
      %9 = constant 5 : s32[]
      %10 = less %6, %9 : u8[]
      return %10
    }
    body(%11: s32[], %12: f32[40,40], %13: f32[40,40]) {
      %14 = constant 1 : s32[]
      %15 = add %11, %14 : s32[]
      %16 = dot_general %12, %13 {lhs_contract = [1], lhs_batch = [], rhs_contract = [0], rhs_batch = []} : f32[40,40]
      %17 = tanh %16 : f32[40,40]
      %18 = add %17, %13 : f32[40,40]
      return %15, %17, %18
    }
  } : s32[], f32[40,40], f32[40,40]
  return %3, %4
}
