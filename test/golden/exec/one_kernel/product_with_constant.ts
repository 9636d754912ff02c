// checks bits
// counts: kernels 1
// The operand of the product is a constant, for which there is no kernel.
graph @main(%0: f32[3,4]) -> (f32[3,5]) {
  %1 = constant 2 : f32[4,5]
  %2 = dot_general %0, %1 {lhs_contract = [1], lhs_batch = [], rhs_contract = [0], rhs_batch = []} : f32[3,5]
  return %2
}
