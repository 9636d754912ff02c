// same passes: expand
graph @main(%0: f32[2,3], %1: f32[]) -> (f32[3]) {
  %2 = reduce %0, %1 {axes = [0]} {
    combine(%3: f32[], %4: f32[]) {
      %5 = constant 2.0 : f32[]
      %6 = multiply %3, %5 : f32[]
      %7 = add %6, %4 : f32[]
      return %7
    }
  } : f32[3]
  return %2
}
