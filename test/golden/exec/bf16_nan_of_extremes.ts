// checks bits
// Sums, products, quotients and roots of bf16 whose operand is the NaN of a maximum, a minimum or a clamp.
graph @main(%0: bf16[999], %1: bf16[999], %2: bf16[999])
    -> (bf16[999], bf16[999], bf16[999], bf16[999], bf16[999]) {
  %3 = max %0, %1 : bf16[999]
  %4 = min %0, %1 : bf16[999]
  %5 = clamp %0, %1, %2 : bf16[999]
  %6 = add %3, %2 : bf16[999]
  %7 = multiply %4, %2 : bf16[999]
  %8 = subtract %2, %5 : bf16[999]
  %9 = divide %3, %4 : bf16[999]
  %10 = sqrt %3 : bf16[999]
  return %6, %7, %8, %9, %10
}
