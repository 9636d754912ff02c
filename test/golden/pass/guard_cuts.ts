// same passes: guard,dce
graph @main(%0: c64[5], %1: c128[2]) -> (c64[5], c64[5], c64[5], c128[2], c128[2], c64[5]) {
  %2 = sqrt %0 : c64[5]
  %3 = acos %0 : c64[5]
  %4 = asin %0 : c64[5]
  %5 = acosh %1 : c128[2]
  %6 = atan %1 : c128[2]
  %7 = log %0 : c64[5]
  return %2, %3, %4, %5, %6, %7
}
