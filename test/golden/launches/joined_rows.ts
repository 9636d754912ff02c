// checks bits of plain passes: launches
// Large launches over short rows whose operands have several memory orders, and over elements few steps apart.
graph @main(%0: u8[20000,3,4], %1: f16[3,20000,4], %2: f16[4,20000,3], %3: s16[80000], %4: f32[20000,9], %5: f32[20000,3], %6: f32[3000,40]) -> (u8[20000,4,3], f16[20000,3,4], f32[40000], f32[20000,4], f32[20000,3], f32[3000,40], f32[40,3000]) {
  %10 = transpose %0 {axes = [0,2,1]} : u8[20000,4,3]
  %20 = fusion %1, %2 {kind = 0} {
    body(%21: f16[3,20000,4], %22: f16[4,20000,3]) {
      %23 = transpose %21 {axes = [1,0,2]} : f16[20000,3,4]
      %24 = transpose %22 {axes = [1,2,0]} : f16[20000,3,4]
      %25 = multiply %23, %24 : f16[20000,3,4]
      return %25
    }
  } : f16[20000,3,4]
  %30 = fusion %3 {kind = 0} {
    body(%31: s16[80000]) {
      %32 = slice %31 {start = [1], limit = [80000], stride = [2]} : s16[40000]
      %33 = convert %32 : f32[40000]
      return %33
    }
  } : f32[40000]
  %40 = slice %4 {start = [0,2], limit = [20000,6], stride = [1,1]} : f32[20000,4]
  %50 = fusion %4, %5 {kind = 0} {
    body(%51: f32[20000,9], %52: f32[20000,3]) {
      %53 = slice %51 {start = [0,0], limit = [20000,9], stride = [1,3]} : f32[20000,3]
      %54 = reverse %53 {axes = [1]} : f32[20000,3]
      %55 = add %54, %52 : f32[20000,3]
      return %55
    }
  } : f32[20000,3]
  %60 = reverse %6 {axes = [0]} : f32[3000,40]
  %70 = transpose %6 {axes = [1,0]} : f32[40,3000]
  return %10, %20, %30, %40, %50, %60, %70
}
