// checks bits of plain
// counts: steps 1, epilogues 1
graph @main(%0: f32[60,70], %1: f32[70,90], %2: f32[10]) -> (f32[10,540]) {
  %3 = dot_general %0, %1 {lhs_contract = [1], lhs_batch = [], rhs_contract = [0], rhs_batch = []} : f32[60,90]
  %4 = reshape %3 {shape = [10,540]} : f32[10,540]
  %5 = broadcast %2 {shape = [10,540], axes = [0]} : f32[10,540]
  %6 = add %4, %5 : f32[10,540]
  return %6
}
