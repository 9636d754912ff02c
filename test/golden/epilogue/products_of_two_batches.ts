// checks bits of plain, but NaN
// counts: steps 1, epilogues 1
// A product for each index of the first dim, with heads between rows and columns.
graph @main(%0: f32[3,90,4,70], %1: f32[3,100,4,70], %2: f32[3,4,90]) -> (f32[3,4,90,100]) {
  %3 = dot_general %0, %1 {lhs_contract = [3], lhs_batch = [0,2], rhs_contract = [3], rhs_batch = [0,2]} : f32[3,4,90,100]
  %4 = broadcast %2 {shape = [3,4,90,100], axes = [0,1,2]} : f32[3,4,90,100]
  %5 = multiply %3, %4 : f32[3,4,90,100]
  %6 = reduce_max %5 {axes = [3]} : f32[3,4,90]
  %7 = broadcast %6 {shape = [3,4,90,100], axes = [0,1,2]} : f32[3,4,90,100]
  %8 = subtract %5, %7 : f32[3,4,90,100]
  return %8
}
