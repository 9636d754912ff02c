// passes: normalize,dots,fuse
graph @main(%0: f32[8], %1: f32[8]) -> (f32[8]) {
  %2 = add %0, %1 : f32[8]
  %3 = callback %2 {index = 0} {
    types() {
      %4 = constant 0 : u8[]
      return %4
    }
  } : u8[]
  %5 = callback %2 {index = 0} {
    types() {
      %6 = constant 0 : u8[]
      return %6
    }
  } : u8[]
  %7 = callback %0 {index = 1} {
    types() {
      %8 = constant 0.0 : f32[8]
      return %8
    }
  } : f32[8]
  %9 = tanh %2 : f32[8]
  %10 = multiply %9, %1 : f32[8]
  %11 = constant 1 : u8[]
  %12 = cond %11, %10 {
    true(%13: f32[8]) {
      %14 = callback %13 {index = 2} {
        types() {
          %15 = constant 0 : u8[]
          return %15
        }
      } : u8[]
      return %13
    }
    false(%16: f32[8]) {
      return %16
    }
  } : f32[8]
  return %10
}
