// checks bits of plain, but NaN
graph @main(%0: f32[2,80,20], %1: f32[2,92,20], %2: f32[2,92,20]) -> (f32[2,80,20]) {
  %3 = constant 0 : s32[]
  %4, %5, %6, %7 = while %3, %0, %1, %2 {
    condition(%40: s32[], %41: f32[2,80,20], %42: f32[2,92,20], %43: f32[2,92,20]) {
      %44 = constant 3 : s32[]
      %45 = less %40, %44 : u8[]
      return %45
    }
    body(%50: s32[], %51: f32[2,80,20], %52: f32[2,92,20], %53: f32[2,92,20]) {
      %54 = constant 1 : s32[]
      %55 = add %50, %54 : s32[]
      %3000 = dot_general %51, %52 {lhs_contract = [2], lhs_batch = [0], rhs_contract = [2], rhs_batch = [0]} : f32[2,80,92]
      %30 = reduce_max %3000 {axes = [2]} : f32[2,80]
      %31 = broadcast %30 {shape = [2,80,92], axes = [0,1]} : f32[2,80,92]
      %32 = subtract %3000, %31 : f32[2,80,92]
      %33 = exp %32 : f32[2,80,92]
      %34 = reduce_sum %33 {axes = [2]} : f32[2,80]
      %35 = broadcast %34 {shape = [2,80,92], axes = [0,1]} : f32[2,80,92]
      %9 = divide %33, %35 : f32[2,80,92]
      %10 = dot_general %9, %53 {lhs_contract = [2], lhs_batch = [0], rhs_contract = [1], rhs_batch = [0]} : f32[2,80,20]
      return %55, %10, %52, %53
    }
  } : s32[], f32[2,80,20], f32[2,92,20], f32[2,92,20]
  return %5
}
