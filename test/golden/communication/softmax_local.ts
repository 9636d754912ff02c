// passes: combine
// sends: 2 collectives, 512 bytes
graph @main mesh @mesh ["model"=4] partitioned (%0: f32[64,1000] sharded [[],[0]]) -> (f32[64,1000] sharded [[],[0]]) {
  %1 = reduce_max %0 {axes = [1]} : f32[64]
  %2 = reshape %1 {shape = [64,1]} : f32[64,1]
  %3 = all_reduce_max %2 {axes = [0]} : f32[64,1]
  %4 = broadcast %3 {shape = [64,1000], axes = [0,1]} : f32[64,1000]
  %5 = subtract %0, %4 : f32[64,1000]
  %6 = exp %5 : f32[64,1000]
  %7 = reduce_sum %6 {axes = [1]} : f32[64]
  %8 = reshape %7 {shape = [64,1]} : f32[64,1]
  %9 = all_reduce_sum %8 {axes = [0]} : f32[64,1]
  %10 = broadcast %9 {shape = [64,1000], axes = [0,1]} : f32[64,1000]
  %11 = divide %6, %10 : f32[64,1000]
  return %11
}
