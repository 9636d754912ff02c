// checks bits passes: launches
// Many elements that views scatter are copied before they are reduced, unless a search may end early, rows are short, or the results are of another type.
graph @main(%0: f32[200000], %1: s32[600,500], %2: u8[80000], %3: s16[80000], %4: f64[700,100], %5: s32[10,1024,12,2]) -> (f32[], s32[100], s32[], s64[], f64[700], s32[1024,6,2]) {
  %19 = fusion %0 {kind = 0} {
    body(%15: f32[200000]) {
      %10 = slice %15 {start = [0], limit = [200000], stride = [5]} : f32[40000]
      %11 = reduce_sum %10 {axes = [0]} : f32[]
      return %11
    }
  } : f32[]
  %29 = fusion %1 {kind = 0} {
    body(%25: s32[600,500]) {
      %20 = slice %25 {start = [0,1], limit = [600,500], stride = [1,5]} : s32[600,100]
      %21 = argmin %20 {axis = 0, high = false} : s32[100]
      return %21
    }
  } : s32[100]
  %39 = fusion %2 {kind = 0} {
    body(%35: u8[80000]) {
      %30 = slice %35 {start = [0], limit = [80000], stride = [2]} : u8[40000]
      %31 = argmax %30 {axis = 0, high = false} : s32[]
      return %31
    }
  } : s32[]
  %49 = fusion %3 {kind = 0} {
    body(%45: s16[80000]) {
      %40 = slice %45 {start = [0], limit = [80000], stride = [2]} : s16[40000]
      %41 = convert %40 : s64[40000]
      %42 = reduce_sum %41 {axes = [0]} : s64[]
      return %42
    }
  } : s64[]
  %59 = fusion %4 {kind = 0} {
    body(%55: f64[700,100]) {
      %50 = slice %55 {start = [0,0], limit = [700,100], stride = [1,2]} : f64[700,50]
      %51 = reduce_max %50 {axes = [1]} : f64[700]
      return %51
    }
  } : f64[700]
  %69 = fusion %5 {kind = 0} {
    body(%65: s32[10,1024,12,2]) {
      %60 = slice %65 {start = [0,0,0,0], limit = [10,1024,12,2], stride = [1,1,2,1]} : s32[10,1024,6,2]
      %61 = reduce_max %60 {axes = [0]} : s32[1024,6,2]
      return %61
    }
  } : s32[1024,6,2]
  return %19, %29, %39, %49, %59, %69
}
