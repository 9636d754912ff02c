// passes: report
graph @steps mesh [2] (%x: f32[8,4] sharded [[0],[]], %w: f32[4], %n: s32[]) -> (f32[4]) {
  %z = constant 0 : s32[]
  %1, %2, %3, %4 = while %z, %w, %x, %n {
    condition(%5: s32[], %6: f32[4], %7: f32[8,4], %8: s32[]) {
      %9 = less %5, %8 : u8[]
      return %9
    }
    body(%10: s32[], %11: f32[4], %12: f32[8,4], %13: s32[]) {
      %14 = constant 1 : s32[]
      %15 = add %10, %14 : s32[]
      %16 = dot_general %12, %11 {lhs_contract = [1], lhs_batch = [], rhs_contract = [0], rhs_batch = []} : f32[8]
      %17 = dot_general %16, %12 {lhs_contract = [0], lhs_batch = [], rhs_contract = [0], rhs_batch = []} : f32[4]
      %18 = subtract %11, %17 : f32[4]
      return %15, %18, %12, %13
    }
  } : s32[], f32[4], f32[8,4], s32[]
  return %2
}
