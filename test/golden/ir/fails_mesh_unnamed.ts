// fails
graph @t mesh ["x"=2,2] (%0: f32[2]) -> (f32[2]) {
  return %0
}
