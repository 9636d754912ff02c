// checks bits passes: launches
graph @main(%0: f32[4,100], %1: f64[100,300], %2: bf16[40000], %3: f32[20000,3]) -> (f32[4], f32[4], f32[4], f64[300], f64[300], f64[300], bf16[], bf16[], bf16[], f32[3], f32[3], f32[3]) {
  %4, %5, %6 = fusion %0 {kind = 0} {
    body(%7: f32[4,100]) {
      %8 = multiply %7, %7 : f32[4,100]
      %9 = reduce_sum %8 {axes = [1]} : f32[4]
      %10 = reduce_sum %7 {axes = [1]} : f32[4]
      %11 = reduce_max %7 {axes = [1]} : f32[4]
      %12 = subtract %11, %9 : f32[4]
      return %12, %9, %10
    }
  } : f32[4], f32[4], f32[4]
  %13, %14, %15 = fusion %1 {kind = 0} {
    body(%16: f64[100,300]) {
      %17 = multiply %16, %16 : f64[100,300]
      %18 = reduce_sum %17 {axes = [0]} : f64[300]
      %19 = reduce_sum %16 {axes = [0]} : f64[300]
      %20 = reduce_max %16 {axes = [0]} : f64[300]
      %21 = subtract %20, %18 : f64[300]
      return %21, %18, %19
    }
  } : f64[300], f64[300], f64[300]
  %22, %23, %24 = fusion %2 {kind = 0} {
    body(%25: bf16[40000]) {
      %26 = multiply %25, %25 : bf16[40000]
      %27 = reduce_sum %26 {axes = [0]} : bf16[]
      %28 = reduce_sum %25 {axes = [0]} : bf16[]
      %29 = reduce_max %25 {axes = [0]} : bf16[]
      %30 = subtract %29, %27 : bf16[]
      return %30, %27, %28
    }
  } : bf16[], bf16[], bf16[]
  %31, %32, %33 = fusion %3 {kind = 0} {
    body(%34: f32[20000,3]) {
      %35 = multiply %34, %34 : f32[20000,3]
      %36 = reduce_sum %35 {axes = [0]} : f32[3]
      %37 = reduce_sum %34 {axes = [0]} : f32[3]
      %38 = reduce_max %34 {axes = [0]} : f32[3]
      %39 = subtract %38, %36 : f32[3]
      return %39, %36, %37
    }
  } : f32[3], f32[3], f32[3]
  return %4, %5, %6, %13, %14, %15, %22, %23, %24, %31, %32, %33
}
