// checks bits
graph @main(%0: f32[2,150001], %1: f32[2]) -> (f32[2,150001]) {
  %2 = broadcast %1 {shape = [2,150001], axes = [0]} : f32[2,150001]
  %3 = iota {axis = 1} : f32[2,150001]
  %4 = multiply %0, %2 : f32[2,150001]
  %5 = add %4, %3 : f32[2,150001]
  return %5
}
