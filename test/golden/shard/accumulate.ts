// passes: report
// The accumulator is cut as what is added to it: before, in and after the loop, and in the branch.
graph @t mesh [4] (%x: f32[64,8] sharded [[0],[]], %n: s32[], %p: u8[]) -> (f32[64,8]) {
  %z = constant 0 : s32[]
  %1 = constant 0.0 : f32[64,8]
  %2, %3, %4, %5 = while %z, %1, %x, %n {
    condition(%6: s32[], %7: f32[64,8], %8: f32[64,8], %9: s32[]) {
      %10 = less %6, %9 : u8[]
      return %10
    }
    body(%11: s32[], %12: f32[64,8], %13: f32[64,8], %14: s32[]) {
      %15 = constant 1 : s32[]
      %16 = add %11, %15 : s32[]
      %17 = add %12, %13 : f32[64,8]
      return %16, %17, %13, %14
    }
  } : s32[], f32[64,8], f32[64,8], s32[]
  %18 = cond %p, %3 {
    true(%19: f32[64,8]) {
      %20 = tanh %19 : f32[64,8]
      return %20
    }
    false(%21: f32[64,8]) {
      return %21
    }
  } : f32[64,8]
  return %18
}
