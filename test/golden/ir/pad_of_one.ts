// passes: verify
graph @main(%0: f32[1,1,3,0], %1: f32[]) -> (f32[1,4,5,2]) {
  %2 = pad %0, %1 {low = [0,2,0,1], high = [0,1,0,1], interior = [1,2,1,3]} : f32[1,4,5,2]
  return %2
}
