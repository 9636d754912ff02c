// passes: loops
// A dynamic start is a term of the address.
graph @main(%0: f64[9], %1: s32[]) -> (f64[4]) {
  %2 = dynamic_slice %0, %1 {shape = [4]} : f64[4]
  %3 = exp %2 : f64[4]
  return %3
}
