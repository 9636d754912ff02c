// fails
graph @t mesh @m ["x"=32769] (%0: f32[2]) -> (f32[2]) {
  return %0
}
