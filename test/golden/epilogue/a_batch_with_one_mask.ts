// checks bits of plain
// counts: steps 1, epilogues 1
graph @main(%0: f32[6,90,40], %1: f32[6,40,130], %2: u8[90,130]) -> (f32[6,90,130]) {
  %3 = dot_general %0, %1 {lhs_contract = [2], lhs_batch = [0], rhs_contract = [1], rhs_batch = [0]} : f32[6,90,130]
  %4 = broadcast %2 {shape = [6,90,130], axes = [1,2]} : u8[6,90,130]
  %5 = constant -1e+30 : f32[6,90,130]
  %6 = select %4, %3, %5 : f32[6,90,130]
  return %6
}
