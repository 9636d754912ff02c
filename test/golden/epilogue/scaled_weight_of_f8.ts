// checks bits of plain
// counts: bytes of temporaries 0
// A widened and scaled weight is never in memory: beside the result there is nothing.
graph @main(%0: bf16[40,500], %1: f8[500,600], %2: bf16[1,600]) -> (bf16[40,600]) {
  %3 = convert %1 : bf16[500,600]
  %4 = broadcast %2 {shape = [500,600], axes = [0,1]} : bf16[500,600]
  %5 = multiply %3, %4 : bf16[500,600]
  %6 = dot_general %0, %5 {lhs_contract = [1], lhs_batch = [], rhs_contract = [0], rhs_batch = []} : bf16[40,600]
  return %6
}
