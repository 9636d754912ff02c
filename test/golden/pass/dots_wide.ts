// same passes: dots,dce
// A product does exact conversions to 32 bits of its operands itself, also behind a transpose, and of one operand only.
// The same to f64 from up to 32 bits. Conversions that round, and those to integers of 64 bits, stay; but products of 64 bits whose sums
// fit 32 bits are widened afterwards.
graph @main(%0: s8[3,4], %1: u8[4,5], %2: bf16[4,5], %3: f32[3,4], %4: s64[3,4], %17: s8[2,131071], %18: s8[2,131072], %19: u16[4,5]) -> (s32[3,5], f32[3,5], f32[3,3], f64[3,5], u64[3,5], s64[2,2], s64[2,2], s64[3,5], s64[3,5]) {
  %5 = convert %0 : s32[3,4]
  %6 = convert %1 : s32[4,5]
  %7 = dot_general %5, %6 {lhs_contract = [1], lhs_batch = [], rhs_contract = [0], rhs_batch = []} : s32[3,5]
  %8 = convert %2 : f32[4,5]
  %9 = dot_general %3, %8 {lhs_contract = [1], lhs_batch = [], rhs_contract = [0], rhs_batch = []} : f32[3,5]
  %10 = convert %0 : f32[3,4]
  %11 = transpose %10 {axes = [1,0]} : f32[4,3]
  %12 = convert %4 : f32[3,4]
  %13 = dot_general %12, %11 {lhs_contract = [1], lhs_batch = [], rhs_contract = [0], rhs_batch = []} : f32[3,3]
  %14 = convert %3 : f64[3,4]
  %15 = convert %2 : f64[4,5]
  %16 = dot_general %14, %15 {lhs_contract = [1], lhs_batch = [], rhs_contract = [0], rhs_batch = []} : f64[3,5]
  %20 = convert %0 : u64[3,4]
  %21 = convert %1 : u64[4,5]
  %22 = dot_general %20, %21 {lhs_contract = [1], lhs_batch = [], rhs_contract = [0], rhs_batch = []} : u64[3,5]
  %23 = convert %17 : s64[2,131071]
  %24 = transpose %23 {axes = [1,0]} : s64[131071,2]
  %25 = dot_general %23, %24 {lhs_contract = [1], lhs_batch = [], rhs_contract = [0], rhs_batch = []} : s64[2,2]
  %26 = convert %18 : s64[2,131072]
  %27 = dot_general %26, %26 {lhs_contract = [1], lhs_batch = [], rhs_contract = [1], rhs_batch = []} : s64[2,2]
  %28 = convert %0 : s64[3,4]
  %29 = convert %19 : s64[4,5]
  %30 = dot_general %28, %29 {lhs_contract = [1], lhs_batch = [], rhs_contract = [0], rhs_batch = []} : s64[3,5]
  %31 = convert %1 : s64[4,5]
  %32 = dot_general %4, %31 {lhs_contract = [1], lhs_batch = [], rhs_contract = [0], rhs_batch = []} : s64[3,5]
  return %7, %9, %13, %16, %22, %25, %27, %30, %32
}
