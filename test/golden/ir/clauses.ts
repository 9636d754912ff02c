// Conds in the false regions of conds are clauses. Four or more are chosen by halves, after what stands in front of each
// cond was computed. Fewer stay nested, and so do those with much to compute in front.
graph @clauses(%0: s32[2], %1: f32[2000]) -> (s32[2], s32[2], f32[2000]) {
  %2 = reduce_sum %0 {axes = [0]} : s32[]
  %3 = constant 1 : s32[]
  %4 = equal %2, %3 : u8[]
  %5, %6 = cond %4, %0 {
    true(%7: s32[2]) {
      %8 = negate %7 : s32[2]
      return %8, %7
    }
    false(%9: s32[2]) {
      %10 = reduce_max %9 {axes = [0]} : s32[]
      %11 = constant 5 : s32[]
      %12 = less %10, %11 : u8[]
      %13, %14 = cond %12, %9 {
        true(%15: s32[2]) {
          %16 = add %15, %15 : s32[2]
          return %15, %16
        }
        false(%17: s32[2]) {
          %18 = constant 7 : s32[]
          %19 = greater %18, %18 : u8[]
          %20, %21 = cond %19, %17 {
            true(%22: s32[2]) {
              return %22, %22
            }
            false(%23: s32[2]) {
              %36 = reduce_min %23 {axes = [0]} : s32[]
              %43 = constant 3 : s32[]
              %37 = not_equal %36, %43 : u8[]
              %38, %39 = cond %37, %23 {
                true(%40: s32[2]) {
                  %41 = sign %40 : s32[2]
                  return %41, %40
                }
                false(%42: s32[2]) {
                  %24 = abs %42 : s32[2]
                  return %24, %42
                }
              } : s32[2], s32[2]
              return %38, %39
            }
          } : s32[2], s32[2]
          return %20, %21
        }
      } : s32[2], s32[2]
      return %13, %14
    }
  } : s32[2], s32[2]
  %25 = cond %4, %1 {
    true(%26: f32[2000]) {
      return %26
    }
    false(%27: f32[2000]) {
      %28 = reduce_max %27 {axes = [0]} : f32[]
      %29 = constant 0.0 : f32[]
      %30 = less %28, %29 : u8[]
      %31 = cond %30, %27 {
        true(%32: f32[2000]) {
          %33 = negate %32 : f32[2000]
          return %33
        }
        false(%34: f32[2000]) {
          %35 = sin %34 : f32[2000]
          return %35
        }
      } : f32[2000]
      return %31
    }
  } : f32[2000]
  return %5, %6, %25
}
