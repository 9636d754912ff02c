// checks bits
// Conversions that round once to types of 16 and 8 bits, by way of digits that are rounded to odd.
graph @main(%0: f64[999], %1: s64[999], %2: s32[999], %3: u32[999], %4: u64[999])
    -> (bf16[999], f16[999], f8[999], bf16[999], bf16[999], bf16[999], bf16[999]) {
  %5 = convert %0 : bf16[999]
  %6 = convert %0 : f16[999]
  %7 = convert %0 : f8[999]
  %8 = convert %1 : bf16[999]
  %9 = convert %2 : bf16[999]
  %10 = convert %3 : bf16[999]
  %11 = convert %4 : bf16[999]
  return %5, %6, %7, %8, %9, %10, %11
}
