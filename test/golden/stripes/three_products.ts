// checks bits of plain, but NaN
// counts: steps 2
graph @main(%0: f32[200,32], %1: f32[32,92], %3: f32[92,80], %4: f32[80,20]) -> (f32[200,20]) {
  %5 = dot_general %0, %1 {lhs_contract = [1], lhs_batch = [], rhs_contract = [0], rhs_batch = []} : f32[200,92]
  %7 = tanh %5 : f32[200,92]
  %10 = dot_general %7, %3 {lhs_contract = [1], lhs_batch = [], rhs_contract = [0], rhs_batch = []} : f32[200,80]
  %12 = tanh %10 : f32[200,80]
  %13 = dot_general %12, %4 {lhs_contract = [1], lhs_batch = [], rhs_contract = [0], rhs_batch = []} : f32[200,20]
  return %13
}
