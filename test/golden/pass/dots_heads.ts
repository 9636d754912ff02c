// checks passes: dots,dce
// Heads between rows and columns are a second batch dim, if the product is large. What is left of a transpose moves whole
// rows. Dims of one element may be inserted behind a transpose.
graph @main(%0: f32[3,90,4,70], %1: f32[3,100,4,70], %2: f32[3,9,4,7], %3: f32[3,10,4,7], %4: f32[3,4,90,100]) -> (f32[3,4,90,100], f32[3,4,9,10], f32[3,90,4,70], f32[3,4,1,90,100]) {
  %5 = dot_general %0, %1 {lhs_contract = [3], lhs_batch = [0,2], rhs_contract = [3], rhs_batch = [0,2]} : f32[3,4,90,100]
  %6 = dot_general %2, %3 {lhs_contract = [3], lhs_batch = [0,2], rhs_contract = [3], rhs_batch = [0,2]} : f32[3,4,9,10]
  %7 = dot_general %1, %4 {lhs_contract = [1], lhs_batch = [0,2], rhs_contract = [3], rhs_batch = [0,1]} : f32[3,4,70,90]
  %8 = transpose %7 {axes = [0,3,1,2]} : f32[3,90,4,70]
  %9 = transpose %0 {axes = [0,2,1,3]} : f32[3,4,90,70]
  %10 = reshape %9 {shape = [3,4,1,90,70]} : f32[3,4,1,90,70]
  %11 = dot_general %10, %1 {lhs_contract = [4], lhs_batch = [0,1], rhs_contract = [3], rhs_batch = [0,2]} : f32[3,4,1,90,100]
  return %5, %6, %8, %11
}
