// fails
graph @main() -> (f32[]) {
  %0 = constant 0 : f32[4294967296,4294967296]
  return %0
}
