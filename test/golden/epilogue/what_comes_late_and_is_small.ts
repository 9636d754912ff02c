// checks bits
// counts: steps 2, epilogues 1
// The factor of each column, which is computed after the product here, does not depend on it: it is computed before.
graph @main(%0: f32[600,70], %1: f32[70,90], %2: f32[90]) -> (f32[600,90]) {
  %3 = dot_general %0, %1 {lhs_contract = [1], lhs_batch = [], rhs_contract = [0], rhs_batch = []} : f32[600,90]
  %4 = sqrt %2 : f32[90]
  %5 = reduce_max %4 {axes = [0]} : f32[]
  %6 = broadcast %5 {shape = [90], axes = []} : f32[90]
  %7 = divide %4, %6 : f32[90]
  %8 = broadcast %7 {shape = [600,90], axes = [1]} : f32[600,90]
  %9 = multiply %3, %8 : f32[600,90]
  return %9
}
