// checks bits of plain
// counts: steps 1, epilogues 1
graph @main(%0: f16[50,80], %1: f16[80,1500]) -> (f16[50,1500]) {
  %2 = dot_general %0, %1 {lhs_contract = [1], lhs_batch = [], rhs_contract = [0], rhs_batch = []} : f16[50,1500]
  %3 = reduce_max %2 {axes = [1]} : f16[50]
  %4 = broadcast %3 {shape = [50,1500], axes = [0]} : f16[50,1500]
  %5 = subtract %2, %4 : f16[50,1500]
  return %5
}
