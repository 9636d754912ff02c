// checks bits of plain, but NaN
// counts: steps 1, epilogues 1
graph @main(%0: f32[200,32], %1: f32[32,92], %2: f32[92], %3: f32[92,20], %4: f32[20]) -> (f32[200,20]) {
  %5 = dot_general %0, %1 {lhs_contract = [1], lhs_batch = [], rhs_contract = [0], rhs_batch = []} : f32[200,92]
  %6 = broadcast %2 {shape = [200,92], axes = [1]} : f32[200,92]
  %7 = add %5, %6 : f32[200,92]
  %8 = constant 0.0 : f32[200,92]
  %9 = max %7, %8 : f32[200,92]
  %10 = dot_general %9, %3 {lhs_contract = [1], lhs_batch = [], rhs_contract = [0], rhs_batch = []} : f32[200,20]
  %11 = broadcast %4 {shape = [200,20], axes = [1]} : f32[200,20]
  %12 = add %10, %11 : f32[200,20]
  return %12
}
