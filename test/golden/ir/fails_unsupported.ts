// fails
graph @main(%0: c64[2]) -> (c64[2]) {
  return %0
}
