// checks bits
graph @main(%0: f32[999]) -> (f32[999], f32[999], f32[999]) {
  %1 = constant 0.5 : f32[999]
  %2 = constant -1 : f32[999]
  %3 = iota {axis = 0} : s32[999]
  %4 = constant 3 : s32[999]
  %5 = bitwise_and %3, %4 : s32[999]
  %6 = equal %5, %4 : u8[999]
  %7 = select %6, %1, %2 : f32[999]
  %8 = pow %0, %1 : f32[999]
  %9 = pow %0, %2 : f32[999]
  %10 = pow %0, %7 : f32[999]
  return %8, %9, %10
}
