// same passes: normalize
// Contractions without free dims: of vectors, of batches, of dims in another order, of halves, of complex numbers.
graph @main(%0: f32[9], %1: f32[9], %2: f32[2,3,4], %3: f32[4,2,3], %4: bf16[70], %5: c64[5]) -> (f32[], f32[2], bf16[], c64[]) {
  %6 = dot_general %0, %1 {lhs_contract = [0], lhs_batch = [], rhs_contract = [0], rhs_batch = []} : f32[]
  %7 = dot_general %2, %3 {lhs_contract = [2,1], lhs_batch = [0], rhs_contract = [0,2], rhs_batch = [1]} : f32[2]
  %8 = dot_general %4, %4 {lhs_contract = [0], lhs_batch = [], rhs_contract = [0], rhs_batch = []} : bf16[]
  %9 = dot_general %5, %5 {lhs_contract = [0], lhs_batch = [], rhs_contract = [0], rhs_batch = []} : c64[]
  return %6, %7, %8, %9
}
