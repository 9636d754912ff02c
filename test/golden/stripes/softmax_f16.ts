// checks bits of plain, but NaN
// counts: steps 1
graph @main(%0: f16[6,70,40], %1: f16[6,200,40], %2: f16[6,200,24]) -> (f16[6,70,24]) {
  %3 = dot_general %0, %1 {lhs_contract = [2], lhs_batch = [0], rhs_contract = [2], rhs_batch = [0]} : f16[6,70,200]
  %30 = reduce_max %3 {axes = [2]} : f16[6,70]
  %31 = broadcast %30 {shape = [6,70,200], axes = [0,1]} : f16[6,70,200]
  %32 = subtract %3, %31 : f16[6,70,200]
  %33 = exp %32 : f16[6,70,200]
  %34 = reduce_sum %33 {axes = [2]} : f16[6,70]
  %35 = broadcast %34 {shape = [6,70,200], axes = [0,1]} : f16[6,70,200]
  %9 = divide %33, %35 : f16[6,70,200]
  %10 = dot_general %9, %2 {lhs_contract = [2], lhs_batch = [0], rhs_contract = [1], rhs_batch = [0]} : f16[6,70,24]
  return %10
}
