// fails passes: loops
graph @main(%0: f32[3,3]) -> (f32[3,3]) {
  %1 = dot_general %0, %0 {lhs_contract = [1], lhs_batch = [], rhs_contract = [0], rhs_batch = []} : f32[3,3]
  return %1
}
