// Ops of complex numbers, which StableHLO takes in another way than real ones.
graph @main(%0: c64[3], %1: c128[2]) -> (f32[3], c64[3], c128[2], u8[3], u8[2], u8[3], u8[3], c64[], c128[2]) {
  %2 = abs %0 : f32[3]
  %3 = sign %0 : c64[3]
  %4 = cbrt %1 : c128[2]
  %5 = is_nan %0 : u8[3]
  %6 = is_infinity %1 : u8[2]
  %7 = equal %0, %3 : u8[3]
  %8 = logical_and %0, %3 : u8[3]
  %9 = constant (1e+20, -3e-30) : c64[]
  %10 = constant (0x7ff0000000000000, 1.5e+300) : c128[2]
  return %2, %3, %4, %5, %6, %7, %8, %9, %10
}
