// checks bits of plain
// counts: steps 1, epilogues 1
graph @main(%0: s16[70,200], %1: s16[200,300]) -> (s16[70,300]) {
  %2 = dot_general %0, %1 {lhs_contract = [1], lhs_batch = [], rhs_contract = [0], rhs_batch = []} : s16[70,300]
  %3 = negate %2 : s16[70,300]
  return %3
}
