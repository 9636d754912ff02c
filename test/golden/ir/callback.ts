// A call of a function outside of the program, which StableHLO has no form of.
graph @t(%0: f32[2]) -> (f32[2]) {
  %1 = callback %0 {index = 3} {
    types() {
      %2 = constant 0.0 : f32[2]
      return %2
    }
  } : f32[2]
  return %1
}
