// checks bits passes: hoist
// A product of what the loop does not change goes before it, and so does what the product is made of. An op on the
// counter, an op on few elements and an op that grows stay. What the inner loop and the outer one leave unchanged goes
// before the outer one.
graph @main(%0: f32[32,32], %1: f32[32], %2: s32[], %3: f32[4]) -> (f32[32], f32[4], f32[32,32]) {
  %4, %5, %6, %7 = while %2, %0, %1, %3 {
    condition(%8: s32[], %9: f32[32,32], %10: f32[32], %11: f32[4]) {
      %12 = constant 3 : s32[]
      %13 = less %8, %12 : u8[]
      return %13
    }
    body(%14: s32[], %15: f32[32,32], %16: f32[32], %17: f32[4]) {
      %18 = constant 1 : s32[]
      %19 = constant 0.5 : f32[]
      %20 = broadcast %19 {shape = [32,32], axes = []} : f32[32,32]
      %21 = multiply %15, %20 : f32[32,32]
      %22 = dot_general %21, %15 {lhs_contract = [1], lhs_batch = [], rhs_contract = [0], rhs_batch = []} : f32[32,32]
      %23 = dot_general %22, %16 {lhs_contract = [1], lhs_batch = [], rhs_contract = [0], rhs_batch = []} : f32[32]
      %24 = tanh %23 : f32[32]
      %25 = add %17, %17 : f32[4]
      %26 = reshape %25 {shape = [4,1]} : f32[4,1]
      %27 = broadcast %26 {shape = [4,8], axes = [0,1]} : f32[4,8]
      %28 = reshape %27 {shape = [32]} : f32[32]
      %29 = add %24, %28 : f32[32]
      %30 = add %14, %18 : s32[]
      %31, %32, %33 = while %14, %29, %15 {
        condition(%34: s32[], %35: f32[32], %36: f32[32,32]) {
          %37 = constant 2 : s32[]
          %38 = less %34, %37 : u8[]
          return %38
        }
        body(%39: s32[], %40: f32[32], %41: f32[32,32]) {
          %42 = constant 1 : s32[]
          %43 = add %39, %42 : s32[]
          %44 = reduce_max %41 {axes = [0]} : f32[32]
          %45 = subtract %40, %44 : f32[32]
          return %43, %45, %41
        }
      } : s32[], f32[32], f32[32,32]
      return %30, %15, %32, %17
    }
  } : s32[], f32[32,32], f32[32], f32[4]
  return %6, %7, %5
}
