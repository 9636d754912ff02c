// checks bits passes: launches
// Elements two to four steps apart, along rows or columns, are read where they lie. Of few rows, columns further apart or reversed are columns, too.
graph @main(%0: f32[80000], %1: s32[600,200], %2: u8[2,32768], %3: f64[3,9000], %4: bf16[2,4000]) -> (f32[], s32[100], u8[16384], f64[3000], bf16[4000], bf16[500]) {
  %19 = fusion %0 {kind = 0} {
    body(%15: f32[80000]) {
      %10 = slice %15 {start = [0], limit = [80000], stride = [2]} : f32[40000]
      %11 = reduce_sum %10 {axes = [0]} : f32[]
      return %11
    }
  } : f32[]
  %29 = fusion %1 {kind = 0} {
    body(%25: s32[600,200]) {
      %20 = slice %25 {start = [0,1], limit = [600,200], stride = [1,2]} : s32[600,100]
      %21 = argmin %20 {axis = 0, high = false} : s32[100]
      return %21
    }
  } : s32[100]
  %39 = fusion %2 {kind = 0} {
    body(%35: u8[2,32768]) {
      %30 = slice %35 {start = [0,0], limit = [2,32768], stride = [1,2]} : u8[2,16384]
      %31 = reduce_min %30 {axes = [0]} : u8[16384]
      return %31
    }
  } : u8[16384]
  %49 = fusion %3 {kind = 0} {
    body(%45: f64[3,9000]) {
      %40 = slice %45 {start = [0,2], limit = [3,9000], stride = [1,3]} : f64[3,3000]
      %41 = reverse %40 {axes = [1]} : f64[3,3000]
      %42 = reduce_sum %41 {axes = [0]} : f64[3000]
      return %42
    }
  } : f64[3000]
  %59 = fusion %4 {kind = 0} {
    body(%55: bf16[2,4000]) {
      %50 = reverse %55 {axes = [1]} : bf16[2,4000]
      %51 = reduce_max %50 {axes = [0]} : bf16[4000]
      return %51
    }
  } : bf16[4000]
  %69 = fusion %4 {kind = 0} {
    body(%65: bf16[2,4000]) {
      %60 = slice %65 {start = [0,0], limit = [2,4000], stride = [1,8]} : bf16[2,500]
      %61 = reduce_max %60 {axes = [0]} : bf16[500]
      return %61
    }
  } : bf16[500]
  return %19, %29, %39, %49, %59, %69
}
