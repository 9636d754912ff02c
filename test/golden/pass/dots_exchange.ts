// same passes: dots,dce
// The product that only its transpose is wanted of, and one that is wanted both ways.
graph @main(%0: f32[3,4], %1: f32[4,5], %2: f32[2,3,4], %3: f32[2,4,5]) -> (f32[5,3], f32[2,5,3], f32[5,3], f32[3,5]) {
  %4 = dot_general %0, %1 {lhs_contract = [1], lhs_batch = [], rhs_contract = [0], rhs_batch = []} : f32[3,5]
  %5 = transpose %4 {axes = [1,0]} : f32[5,3]
  %6 = dot_general %2, %3 {lhs_contract = [2], lhs_batch = [0], rhs_contract = [1], rhs_batch = [0]} : f32[2,3,5]
  %7 = transpose %6 {axes = [0,2,1]} : f32[2,5,3]
  %8 = exp %1 : f32[4,5]
  %9 = dot_general %0, %8 {lhs_contract = [1], lhs_batch = [], rhs_contract = [0], rhs_batch = []} : f32[3,5]
  %10 = transpose %9 {axes = [1,0]} : f32[5,3]
  return %5, %7, %10, %9
}
