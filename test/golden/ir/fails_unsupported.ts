// fails
graph @main(%0: c65[2]) -> (c65[2]) {
  return %0
}
