// checks passes: normalize,dots,fuse
// relu(x@w + b) and the gradients of its operand and of b: one kernel after the product, and no second one of the sum.
graph @main(%0: f32[4,3], %1: f32[3,5], %2: f32[5], %3: f32[4,5]) -> (f32[4,5], f32[4,5], f32[5]) {
  %4 = dot_general %0, %1 {lhs_contract = [1], lhs_batch = [], rhs_contract = [0], rhs_batch = []} : f32[4,5]
  %5 = broadcast %2 {shape = [4,5], axes = [1]} : f32[4,5]
  %6 = add %4, %5 : f32[4,5]
  %7 = constant 0.0 : f32[4,5]
  %8 = max %6, %7 : f32[4,5]
  %9 = greater %6, %7 : u8[4,5]
  %10 = select %9, %3, %7 : f32[4,5]
  %11 = reduce_sum %10 {axes = [0]} : f32[5]
  return %8, %10, %11
}
