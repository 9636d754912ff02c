// checks bits passes: launches
graph @main(%0: f32[2,3], %1: f32[2,3], %2: f32[], %3: f32[], %4: f32[0,3], %5: f32[7]) -> (f32[2,3], f32[], f32[0,3], s8[7]) {
  %6 = add %0, %1 : f32[2,3]
  %7 = add %2, %3 : f32[]
  %8 = negate %4 : f32[0,3]
  %9 = convert %5 : s8[7]
  return %6, %7, %8, %9
}
