// checks bits
// counts: kernels 1
// Both steps of a long sum take the same kernel.
graph @main(%0: f64[2000003]) -> (f64[]) {
  %1 = reduce_sum %0 {axes = [0]} : f64[]
  return %1
}
