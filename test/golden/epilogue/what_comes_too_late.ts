// checks bits of plain
// counts: steps 3, epilogues 0
graph @main(%0: f32[60,70], %1: f32[70,90], %2: f32[40,90]) -> (f32[60,90]) {
  %3 = dot_general %0, %1 {lhs_contract = [1], lhs_batch = [], rhs_contract = [0], rhs_batch = []} : f32[60,90]
  %4 = cumulative_sum %2 {axis = 0, reverse = false} : f32[40,90]
  %5 = slice %4 {start = [39,0], limit = [40,90], stride = [1,1]} : f32[1,90]
  %6 = broadcast %5 {shape = [60,90], axes = [0,1]} : f32[60,90]
  %7 = add %3, %6 : f32[60,90]
  return %7
}
