// checks bits passes: dots
// The first of each line is an argmax and is taken from its place; few elements, and short lines whose positions nothing reads, stay top_k.
graph @main(%0: f32[30,40], %1: bf16[7,3000], %2: s32[2,500], %3: u8[90], %4: f64[100,20], %5: f16[2,3,300], %6: f32[4,1]) -> (f32[30,1], bf16[7,1], s32[7,1], s32[2,1], u8[1], f64[100,1], f64[100,1], s32[100,1], s32[2,3,1], f32[4,1]) {
  %10, %11 = top_k %0 {k = 1} : f32[30,1], s32[30,1]
  %12, %13 = top_k %1 {k = 1} : bf16[7,1], s32[7,1]
  %14, %15 = top_k %2 {k = 1} : s32[2,1], s32[2,1]
  %16, %17 = top_k %3 {k = 1} : u8[1], s32[1]
  %18, %19 = top_k %4 {k = 1} : f64[100,1], s32[100,1]
  %20 = negate %4 : f64[100,20]
  %21, %22 = top_k %20 {k = 1} : f64[100,1], s32[100,1]
  %23, %24 = top_k %5 {k = 1} : f16[2,3,1], s32[2,3,1]
  %25, %26 = top_k %6 {k = 1} : f32[4,1], s32[4,1]
  return %10, %12, %13, %14, %16, %18, %21, %22, %24, %25
}
