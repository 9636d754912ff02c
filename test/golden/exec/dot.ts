// checks bits
// No product overflows: without FMA hardware its rounding would show, which test_gemm knows of.
graph @main(%0: f32[17,33], %1: f32[33,9]) -> (f32[17,9]) {
  %2 = convert %0 : s8[17,33]
  %3 = convert %1 : s8[33,9]
  %4 = convert %2 : f32[17,33]
  %5 = convert %3 : f32[33,9]
  %6 = dot_general %4, %5 {lhs_contract = [1], lhs_batch = [], rhs_contract = [0], rhs_batch = []} : f32[17,9]
  return %6
}
