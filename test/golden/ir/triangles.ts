// passes: verify
// In StableHLO an op gets only the elements that it reads: compilers may multiply the others by zero.
graph @main(%0: c64[2,3,3], %1: f64[4,4], %2: f64[4,2], %3: f32[2,2], %4: f32[5,2], %5: f32[0,0]) -> (c64[2,3,3], f64[4,2], f32[5,2], f32[0,0]) {
  %6 = cholesky %0 : c64[2,3,3]
  %7 = triangular_solve %1, %2 {left = true, lower = false, transpose = true, unit = false} : f64[4,2]
  %8 = triangular_solve %3, %4 {left = false, lower = true, transpose = false, unit = true} : f32[5,2]
  %9 = cholesky %5 : f32[0,0]
  return %6, %7, %8, %9
}
