// checks bits of plain
// counts: steps 1, epilogues 1, bytes of temporaries 0, bytes of results 840000
// What is planned for a product that its epilogue turns into the result is the result alone.
graph @main(%0: f32[300,200], %1: f32[200,700], %2: f32[700]) -> (f32[300,700]) {
  %3 = dot_general %0, %1 {lhs_contract = [1], lhs_batch = [], rhs_contract = [0], rhs_batch = []} : f32[300,700]
  %4 = broadcast %2 {shape = [300,700], axes = [1]} : f32[300,700]
  %5 = add %3, %4 : f32[300,700]
  %6 = constant 0.0 : f32[300,700]
  %7 = max %5, %6 : f32[300,700]
  return %7
}
