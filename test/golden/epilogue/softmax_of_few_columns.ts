// checks bits of plain
// counts: steps 1, epilogues 1
graph @main(%0: f32[3,1200,90], %1: f32[3,90,10]) -> (f32[3,1200,10], s32[3,1200]) {
  %2 = dot_general %0, %1 {lhs_contract = [2], lhs_batch = [0], rhs_contract = [1], rhs_batch = [0]} : f32[3,1200,10]
  %3 = reduce_max %2 {axes = [2]} : f32[3,1200]
  %4 = broadcast %3 {shape = [3,1200,10], axes = [0,1]} : f32[3,1200,10]
  %5 = subtract %2, %4 : f32[3,1200,10]
  %6 = exp %5 : f32[3,1200,10]
  %7 = reduce_sum %6 {axes = [2]} : f32[3,1200]
  %8 = broadcast %7 {shape = [3,1200,10], axes = [0,1]} : f32[3,1200,10]
  %9 = divide %6, %8 : f32[3,1200,10]
  %10 = argmax %9 {axis = 2, high = false} : s32[3,1200]
  return %9, %10
}
