// same passes: expand
graph @main(%0: f32[2,3], %1: f32[]) -> (f32[3]) {
  %2 = reduce %0, %1 {axes = [0]} {
    combine(%3: f32[], %4: f32[]) {
      %5 = greater %3, %4 : u8[]
      %6 = cond %5, %3, %4 {
        true(%7: f32[], %8: f32[]) {
          return %7
        }
        false(%9: f32[], %10: f32[]) {
          return %10
        }
      } : f32[]
      return %6
    }
  } : f32[3]
  return %2
}
