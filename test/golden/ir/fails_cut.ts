// fails
graph @main(%0: f32[2]) -> (f32[2]) {
  %1 = add %0,
