// passes: verify
graph @main(%0: s4[3], %1: u2[2], %2: f8[3], %3: f8_e4m3fn[3]) -> (s4[3], u2[2], f8[3], f8_e4m3fn[3], s4[2], f8[]) {
  %4 = constant -8 : s4[3]
  %5 = add %0, %4 : s4[3]
  %6 = not_equal %1, %1 : u8[2]
  %7 = convert %6 : u2[2]
  %8 = constant 0x7c : f8[3]
  %9 = multiply %2, %8 : f8[3]
  %10 = constant 448.0 : f8_e4m3fn[3]
  %11 = max %3, %10 : f8_e4m3fn[3]
  %12 = literal "07ff" : s4[2]
  %13 = constant 0.109375 : f8[]
  return %5, %7, %9, %11, %12, %13
}
