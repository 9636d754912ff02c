// same passes: fuse
graph @main(%0: f32[8], %1: f32[8], %2: f32[8], %3: f32[8,3], %4: f32[3]) -> (f32[8], f32[8], f32[3]) {
  %5 = dot_general %3, %4 {lhs_contract = [1], lhs_batch = [], rhs_contract = [0], rhs_batch = []} : f32[8]
  %6 = exp %5 : f32[8]
  %7 = subtract %0, %6 : f32[8]
  %8 = multiply %1, %6 : f32[8]
  %9 = add %8, %2 : f32[8]
  %10 = negate %4 : f32[3]
  return %7, %9, %10
}
