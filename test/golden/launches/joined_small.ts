// checks bits of plain passes: launches
// Short rows that are computed are joined from a few thousand points on; those that are only moved, in large launches.
graph @main(%0: f16[10000,5], %1: f64[5000,5], %2: f16[4000,5], %3: u8[10000,3]) -> (f16[10000,2], f64[5000,3], f16[4000,2], u8[10000,2], f16[10000,2]) {
  %10 = fusion %0 {kind = 0} {
    body(%11: f16[10000,5]) {
      %12 = slice %11 {start = [0,1], limit = [10000,3], stride = [1,1]} : f16[10000,2]
      %13 = multiply %12, %12 : f16[10000,2]
      %14 = add %13, %12 : f16[10000,2]
      return %14
    }
  } : f16[10000,2]
  %20 = fusion %1 {kind = 0} {
    body(%21: f64[5000,5]) {
      %22 = slice %21 {start = [0,0], limit = [5000,5], stride = [1,2]} : f64[5000,3]
      %23 = multiply %22, %22 : f64[5000,3]
      return %23
    }
  } : f64[5000,3]
  %30 = fusion %2 {kind = 0} {
    body(%31: f16[4000,5]) {
      %32 = slice %31 {start = [0,1], limit = [4000,3], stride = [1,1]} : f16[4000,2]
      %33 = multiply %32, %32 : f16[4000,2]
      return %33
    }
  } : f16[4000,2]
  %40 = fusion %3 {kind = 0} {
    body(%41: u8[10000,3]) {
      %42 = slice %41 {start = [0,1], limit = [10000,3], stride = [1,1]} : u8[10000,2]
      %43 = add %42, %42 : u8[10000,2]
      return %43
    }
  } : u8[10000,2]
  %50 = slice %0 {start = [0,1], limit = [10000,3], stride = [1,1]} : f16[10000,2]
  return %10, %20, %30, %40, %50
}
