// checks bits
// Products of many terms: vectors on either side, matrices, a batch, halves, complex numbers, a part of a long vector.
graph @main(%0: f32[3,9001], %1: f32[9001,5], %2: f32[9001], %3: f32[2,2,8200], %4: bf16[2,9000], %5: f32[2,4100], %6: f32[20001]) -> (f32[3,5], f32[3], f32[5], f32[2,2,2], bf16[2,2], c64[2,2], f32[]) {
  %7 = dot_general %0, %1 {lhs_contract = [1], lhs_batch = [], rhs_contract = [0], rhs_batch = []} : f32[3,5]
  %8 = dot_general %0, %2 {lhs_contract = [1], lhs_batch = [], rhs_contract = [0], rhs_batch = []} : f32[3]
  %9 = dot_general %2, %1 {lhs_contract = [0], lhs_batch = [], rhs_contract = [0], rhs_batch = []} : f32[5]
  %10 = dot_general %3, %3 {lhs_contract = [2], lhs_batch = [0], rhs_contract = [2], rhs_batch = [0]} : f32[2,2,2]
  %11 = dot_general %4, %4 {lhs_contract = [1], lhs_batch = [], rhs_contract = [1], rhs_batch = []} : bf16[2,2]
  %12 = negate %5 : f32[2,4100]
  %13 = complex %5, %12 : c64[2,4100]
  %14 = dot_general %13, %13 {lhs_contract = [1], lhs_batch = [], rhs_contract = [1], rhs_batch = []} : c64[2,2]
  %15 = dot_general %6, %6 {lhs_contract = [0], lhs_batch = [], rhs_contract = [0], rhs_batch = []} : f32[]
  return %7, %8, %9, %10, %11, %14, %15
}
