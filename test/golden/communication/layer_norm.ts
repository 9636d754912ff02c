// passes: report
// sends: 2 collectives, 512 bytes
graph @main mesh @mesh ["model"=4] (%0: f32[64,1024] sharded [[],[0]], %1: f32[1024] sharded [[0]], %2: f32[1024] sharded [[0]]) -> (f32[64,1024] sharded [[],[0]]) {
  %3 = reduce_sum %0 {axes = [1]} : f32[64]
  %4 = reshape %3 {shape = [64,1]} : f32[64,1]
  %5 = constant 1024.0 : f32[64,1]
  %6 = divide %4, %5 : f32[64,1]
  %7 = broadcast %6 {shape = [64,1024], axes = [0,1]} : f32[64,1024]
  %8 = subtract %0, %7 : f32[64,1024]
  %9 = multiply %8, %8 : f32[64,1024]
  %10 = reduce_sum %9 {axes = [1]} : f32[64]
  %11 = reshape %10 {shape = [64,1]} : f32[64,1]
  %12 = constant 1024.0 : f32[64,1]
  %13 = divide %11, %12 : f32[64,1]
  %14 = constant 1e-05 : f32[64,1]
  %15 = add %13, %14 : f32[64,1]
  %16 = rsqrt %15 : f32[64,1]
  %17 = broadcast %16 {shape = [64,1024], axes = [0,1]} : f32[64,1024]
  %18 = multiply %8, %17 : f32[64,1024]
  %19 = broadcast %1 {shape = [64,1024], axes = [1]} : f32[64,1024]
  %20 = multiply %18, %19 : f32[64,1024]
  %21 = broadcast %2 {shape = [64,1024], axes = [1]} : f32[64,1024]
  %22 = add %20, %21 : f32[64,1024]
  return %22
}
