// passes: loops
graph @main(%0: f32[2,3], %1: f32[2]) -> (f32[3,2]) {
  %2 = transpose %0 {axes = [1,0]} : f32[3,2]
  %3 = broadcast %1 {shape = [3,2], axes = [1]} : f32[3,2]
  %4 = add %2, %3 : f32[3,2]
  return %4
}
