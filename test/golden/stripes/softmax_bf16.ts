// checks bits of plain, but NaN
graph @main(%0: bf16[6,70,40], %1: bf16[6,132,40], %2: bf16[6,132,24]) -> (bf16[6,70,24]) {
  %3 = dot_general %0, %1 {lhs_contract = [2], lhs_batch = [0], rhs_contract = [2], rhs_batch = [0]} : bf16[6,70,132]
  %30 = reduce_max %3 {axes = [2]} : bf16[6,70]
  %31 = broadcast %30 {shape = [6,70,132], axes = [0,1]} : bf16[6,70,132]
  %32 = subtract %3, %31 : bf16[6,70,132]
  %33 = exp %32 : bf16[6,70,132]
  %34 = reduce_sum %33 {axes = [2]} : bf16[6,70]
  %35 = broadcast %34 {shape = [6,70,132], axes = [0,1]} : bf16[6,70,132]
  %9 = divide %33, %35 : bf16[6,70,132]
  %10 = dot_general %9, %2 {lhs_contract = [2], lhs_batch = [0], rhs_contract = [1], rhs_batch = [0]} : bf16[6,70,24]
  return %10
}
