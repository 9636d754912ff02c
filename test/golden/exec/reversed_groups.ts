// checks bits
// Groups of elements that are copied in another order: vectors of several groups, or rows.
graph @main(%0: bf16[700,16,7], %1: f32[8001,5], %2: f32[700,20,3], %3: s16[7003,6], %4: f64[9001,4], %5: u8[4001,16], %6: u8[4001,9], %7: f32[4001,16], %8: s64[5001,13], %9: c64[11001,3]) -> (bf16[700,16,7], f32[8001,5], f32[700,20,3], s16[7003,6], f64[9001,4], u8[4001,16], u8[4001,9], f32[4001,16], s64[5001,13], c64[11001,3]) {
  %10 = reverse %0 {axes = [1]} : bf16[700,16,7]
  %11 = reverse %1 {axes = [1]} : f32[8001,5]
  %12 = reverse %2 {axes = [1]} : f32[700,20,3]
  %13 = reverse %3 {axes = [0]} : s16[7003,6]
  %14 = reverse %4 {axes = [0,1]} : f64[9001,4]
  %15 = reverse %5 {axes = [1]} : u8[4001,16]
  %16 = reverse %6 {axes = [0,1]} : u8[4001,9]
  %17 = reverse %7 {axes = [1]} : f32[4001,16]
  %18 = reverse %8 {axes = [1]} : s64[5001,13]
  %19 = reverse %9 {axes = [1]} : c64[11001,3]
  return %10, %11, %12, %13, %14, %15, %16, %17, %18, %19
}
