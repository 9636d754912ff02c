// passes: report
// sends: 2 collectives, 512 bytes
graph @main mesh @mesh ["model"=4] (%0: f32[64,4000] sharded [[],[0]]) -> (f32[64,4000] sharded [[],[0]]) {
  %1 = reduce_max %0 {axes = [1]} : f32[64]
  %2 = reshape %1 {shape = [64,1]} : f32[64,1]
  %3 = reshape %2 {shape = [64,1]} : f32[64,1]
  %4 = broadcast %3 {shape = [64,4000], axes = [0,1]} : f32[64,4000]
  %5 = subtract %0, %4 : f32[64,4000]
  %6 = exp %5 : f32[64,4000]
  %7 = reduce_sum %6 {axes = [1]} : f32[64]
  %8 = reshape %7 {shape = [64,1]} : f32[64,1]
  %9 = broadcast %8 {shape = [64,4000], axes = [0,1]} : f32[64,4000]
  %10 = divide %6, %9 : f32[64,4000]
  return %10
}
