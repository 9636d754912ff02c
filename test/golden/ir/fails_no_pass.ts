// fails passes: verify,no_such_pass
graph @main(%0: f32[]) -> (f32[]) {
  return %0
}
