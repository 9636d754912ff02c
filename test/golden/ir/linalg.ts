// Ops of linear algebra that StableHLO has no form of.
graph @main(%0: f32[2,2], %1: f32[2,3]) -> (f32[2,3], f32[], f32[2,2], f32[2,2]) {
  %2 = solve %0, %1 : f32[2,3]
  %3 = determinant %0 : f32[]
  %4, %5, %6 = lu %0 : f32[2,2], f32[2,2], f32[2,2]
  %7, %8 = qr %4 {full = true} : f32[2,2], f32[2,2]
  %9, %10 = eigh %7 : f32[2], f32[2,2]
  %11, %12, %13 = svd %10 {full = false} : f32[2,2], f32[2], f32[2,2]
  return %2, %3, %11, %13
}
