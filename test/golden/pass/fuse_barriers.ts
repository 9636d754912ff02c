// same passes: fuse
graph @main(%0: f32[4,4], %1: f32[4,4]) -> (f32[4,4], f32[2,4], f32[8,4]) {
  %2 = exp %0 : f32[4,4]
  %3 = dot_general %2, %1 {lhs_contract = [1], lhs_batch = [], rhs_contract = [0], rhs_batch = []} : f32[4,4]
  %4 = tanh %3 : f32[4,4]
  %5 = add %4, %2 : f32[4,4]
  %6 = slice %5 {start = [0,0], limit = [2,4], stride = [1,1]} : f32[2,4]
  %7 = negate %6 : f32[2,4]
  %8 = negate %0 : f32[4,4]
  %9 = concatenate %8, %1 {axis = 0} : f32[8,4]
  return %5, %7, %9
}
