// passes: report
graph @softmax mesh [2,2] (%x: f32[8,32] sharded [[0],[1]]) -> (f32[8,32] sharded [[0],[1]]) {
  %1 = reduce_max %x {axes = [1]} : f32[8]
  %2 = broadcast %1 {shape = [8,32], axes = [0]} : f32[8,32]
  %3 = subtract %x, %2 : f32[8,32]
  %4 = exp %3 : f32[8,32]
  %5 = reduce_sum %4 {axes = [1]} : f32[8]
  %6 = broadcast %5 {shape = [8,32], axes = [0]} : f32[8,32]
  %7 = divide %4, %6 : f32[8,32]
  return %7
}
