// checks bits of plain
// counts: steps 1, epilogues 1
graph @main(%0: f32[2500,9], %1: f32[9,2560], %2: f32[2560]) -> (f32[2500,2560]) {
  %3 = dot_general %0, %1 {lhs_contract = [1], lhs_batch = [], rhs_contract = [0], rhs_batch = []} : f32[2500,2560]
  %4 = broadcast %2 {shape = [2500,2560], axes = [1]} : f32[2500,2560]
  %5 = add %3, %4 : f32[2500,2560]
  return %5
}
