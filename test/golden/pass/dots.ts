// same passes: dots,dce
graph @main(%0: f32[3,4], %1: f32[3,5], %2: f32[2,3,4,5], %3: f32[3,6]) -> (f32[4,5], f32[2,4,5,6]) {
  %4 = transpose %0 {axes = [1,0]} : f32[4,3]
  %5 = dot_general %4, %1 {lhs_contract = [1], lhs_batch = [], rhs_contract = [0], rhs_batch = []} : f32[4,5]
  %6 = dot_general %2, %3 {lhs_contract = [1], lhs_batch = [], rhs_contract = [0], rhs_batch = []} : f32[2,4,5,6]
  return %5, %6
}
