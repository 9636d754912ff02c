// checks bits
// A part, a scan and a branch that are written in place, and values that are read after.
graph @main(%0: f32[16,8], %1: f32[16,8], %2: s32[], %3: f32[8]) -> (f32[16,8], f32[16,8], f32[16,8], f32[8]) {
  %4, %5, %6, %7, %8 = while %0, %1, %1, %2, %3 {
    condition(%9: f32[16,8], %10: f32[16,8], %11: f32[16,8], %12: s32[], %13: f32[8]) {
      %14 = constant 7 : s32[]
      %15 = slice %10 {start = [0,0], limit = [1,1], stride = [1,1]} : f32[1,1]
      %16 = reshape %15 {shape = []} : f32[]
      %17 = constant 1.0e30 : f32[]
      %18 = less %16, %17 : u8[]
      %19 = less %12, %14 : u8[]
      %20 = logical_and %18, %19 : u8[]
      return %20
    }
    body(%21: f32[16,8], %22: f32[16,8], %23: f32[16,8], %24: s32[], %25: f32[8]) {
      %26 = constant 1 : s32[]
      %27 = constant 0 : s32[]
      %28 = add %24, %26 : s32[]
      %29 = reduce_sum %22 {axes = [0]} : f32[8]
      %30 = reshape %29 {shape = [1,8]} : f32[1,8]
      %31 = put_slice %21, %30, %24, %27 : f32[16,8]
      %32 = less %24, %27 : u8[]
      %33 = cond %32, %22, %31 {
        true(%34: f32[16,8], %35: f32[16,8]) {
          %36 = add %34, %35 : f32[16,8]
          return %36
        }
        false(%37: f32[16,8], %38: f32[16,8]) {
          %40 = slice %38 {start = [2,0], limit = [4,4], stride = [1,1]} : f32[2,4]
          %41 = constant 3 : s32[]
          %39 = put_slice %37, %40, %41, %41 : f32[16,8]
          return %39
        }
      } : f32[16,8]
      %42 = cumulative_sum %25 {axis = 0, reverse = false} : f32[8]
      return %31, %33, %22, %28, %42
    }
  } : f32[16,8], f32[16,8], f32[16,8], s32[], f32[8]
  return %4, %5, %6, %8
}
