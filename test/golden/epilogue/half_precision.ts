// checks bits of plain
// counts: steps 1, epilogues 1
graph @main(%0: bf16[70,200], %1: bf16[200,2300], %2: bf16[2300]) -> (bf16[70,2300]) {
  %3 = dot_general %0, %1 {lhs_contract = [1], lhs_batch = [], rhs_contract = [0], rhs_batch = []} : bf16[70,2300]
  %4 = broadcast %2 {shape = [70,2300], axes = [1]} : bf16[70,2300]
  %5 = add %3, %4 : bf16[70,2300]
  return %5
}
