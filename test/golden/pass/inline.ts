// same passes: inline
graph @main(%0: f32[2]) -> (f32[2]) {
  %1 = call %0 {
    body(%2: f32[2]) {
      %3 = call %2 {
        body(%4: f32[2]) {
          %5 = tanh %4 : f32[2]
          return %5
        }
      } : f32[2]
      %6 = exp %3 : f32[2]
      return %6
    }
  } : f32[2]
  return %1
}
