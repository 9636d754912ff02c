// fails
graph @main(%0: f32[], %1: f32[]) -> (f32[]) {
  %2 = call %0 {
    body(%3: f32[]) {
      %4 = add %3, %1 : f32[]
      return %4
    }
  } : f32[]
  return %2
}
