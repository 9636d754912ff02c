// checks bits
// The exponents that pow is defined for by other ops, as constants and as data.
graph @main(%0: bf16[999]) -> (bf16[999], bf16[999], bf16[999], bf16[999], bf16[999]) {
  %1 = constant 0 : bf16[999]
  %2 = constant 1 : bf16[999]
  %3 = constant 2 : bf16[999]
  %4 = constant 3 : bf16[999]
  %5 = iota {axis = 0} : s32[999]
  %6 = constant 3 : s32[999]
  %7 = bitwise_and %5, %6 : s32[999]
  %8 = convert %7 : bf16[999]
  %9 = pow %0, %1 : bf16[999]
  %10 = pow %0, %2 : bf16[999]
  %11 = pow %0, %3 : bf16[999]
  %12 = pow %0, %4 : bf16[999]
  %13 = pow %0, %8 : bf16[999]
  return %9, %10, %11, %12, %13
}
