// passes: report
// In the body two sums are one message, and the weights are gathered once, before the loop.
graph @steps mesh [2] (%x: f32[8,4] sharded [[0],[]], %w: f32[4,4] sharded [[0],[]], %b: f32[4], %c: f32[4], %n: s32[]) -> (f32[4], f32[4]) {
  %z = constant 0 : s32[]
  %1, %2, %3, %4, %5, %6 = while %z, %b, %c, %x, %w, %n {
    condition(%7: s32[], %8: f32[4], %9: f32[4], %10: f32[8,4], %11: f32[4,4], %12: s32[]) {
      %13 = less %7, %12 : u8[]
      return %13
    }
    body(%14: s32[], %15: f32[4], %16: f32[4], %17: f32[8,4], %18: f32[4,4], %19: s32[]) {
      %20 = constant 1 : s32[]
      %21 = add %14, %20 : s32[]
      %22 = dot_general %17, %18 {lhs_contract = [1], lhs_batch = [], rhs_contract = [0], rhs_batch = []} : f32[8,4]
      %23 = reduce_sum %22 {axes = [0]} : f32[4]
      %24 = multiply %22, %22 : f32[8,4]
      %25 = reduce_sum %24 {axes = [0]} : f32[4]
      %26 = subtract %15, %23 : f32[4]
      %27 = subtract %16, %25 : f32[4]
      return %21, %26, %27, %17, %18, %19
    }
  } : s32[], f32[4], f32[4], f32[8,4], f32[4,4], s32[]
  return %2, %3
}
