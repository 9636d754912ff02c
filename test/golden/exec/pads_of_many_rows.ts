// checks bits
// counts: bytes of temporaries 0
// Of a large result, a pad fills only what the operand leaves free, where this has few rows. Negative padding takes
// elements away.
graph @main(%0: f32[130,140], %1: u8[9,64,70,5], %2: s64[90,95], %3: f16[3,200,130], %4: f64[9000,2], %5: f32[200,100]) -> (f32[131,146], u8[11,68,103,5], s64[91,92], f16[3,200,133], f64[9000,4], f32[200,202]) {
  %6 = constant 1.5 : f32[]
  %7 = pad %0, %6 {low = [0,3], high = [1,3], interior = [0,0]} : f32[131,146]
  %8 = constant 7 : u8[]
  %9 = pad %1, %8 {low = [2,1,30,0], high = [0,3,3,0], interior = [0,0,0,0]} : u8[11,68,103,5]
  %10 = constant -1 : s64[]
  %11 = pad %2, %10 {low = [2,-7], high = [-1,4], interior = [0,0]} : s64[91,92]
  %12 = constant -2.5 : f16[]
  %13 = negate %3 : f16[3,200,130]
  %14 = pad %13, %12 {low = [0,0,1], high = [0,0,2], interior = [0,0,0]} : f16[3,200,133]
  %15 = constant 0.0 : f64[]
  %16 = pad %4, %15 {low = [0,1], high = [0,1], interior = [0,0]} : f64[9000,4]
  %17 = pad %5, %6 {low = [0,1], high = [0,2], interior = [0,1]} : f32[200,202]
  return %7, %9, %11, %14, %16, %17
}
