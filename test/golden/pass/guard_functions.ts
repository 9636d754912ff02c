// same passes: guard,dce
graph @main(%0: c64[5], %1: c128[2]) -> (c64[5], c64[5], c128[2], c64[5]) {
  %2 = sqrt %0 : c64[5]
  %3 = sign %0 : c64[5]
  %4 = acos %1 : c128[2]
  %5 = exp %0 : c64[5]
  return %2, %3, %4, %5
}
