// checks bits of plain passes: launches
// Heavy ops on rows that fill a part of a vector: another loop is innermost, unless the launch is large or the ops are light.
graph @main(%0: f64[2,263,2], %1: f64[2,1000], %2: bf16[263,6], %3: f64[2,20000,2], %4: f32[2,1000]) -> (f64[263,2,2], f64[1000,2], bf16[263,2], f64[20000,2,2], f32[1000,2], f64[263,2,2]) {
  %10 = fusion %0 {kind = 0} {
    body(%11: f64[2,263,2]) {
      %12 = transpose %11 {axes = [1,0,2]} : f64[263,2,2]
      %13 = tanh %12 : f64[263,2,2]
      return %13
    }
  } : f64[263,2,2]
  %20 = fusion %1 {kind = 0} {
    body(%21: f64[2,1000]) {
      %22 = transpose %21 {axes = [1,0]} : f64[1000,2]
      %23 = exp %22 : f64[1000,2]
      return %23
    }
  } : f64[1000,2]
  %30 = fusion %2 {kind = 0} {
    body(%31: bf16[263,6]) {
      %32 = slice %31 {start = [0,1], limit = [263,3], stride = [1,1]} : bf16[263,2]
      %33 = tanh %32 : bf16[263,2]
      %34 = erf %33 : bf16[263,2]
      %35 = sin %34 : bf16[263,2]
      return %35
    }
  } : bf16[263,2]
  %40 = fusion %3 {kind = 0} {
    body(%41: f64[2,20000,2]) {
      %42 = transpose %41 {axes = [1,0,2]} : f64[20000,2,2]
      %43 = tanh %42 : f64[20000,2,2]
      return %43
    }
  } : f64[20000,2,2]
  %50 = fusion %4 {kind = 0} {
    body(%51: f32[2,1000]) {
      %52 = transpose %51 {axes = [1,0]} : f32[1000,2]
      %53 = negate %52 : f32[1000,2]
      return %53
    }
  } : f32[1000,2]
  %60 = fusion %0 {kind = 0} {
    body(%61: f64[2,263,2]) {
      %62 = transpose %61 {axes = [1,2,0]} : f64[263,2,2]
      %63 = atan2 %62, %62 : f64[263,2,2]
      return %63
    }
  } : f64[263,2,2]
  return %10, %20, %30, %40, %50, %60
}
