// passes: verify
graph @main mesh [2,2] partitioned coordinates (%0: f32[4,6] sharded [[0],[1]], %1: s32[2], %2: s32[2]) -> (f32[4,6] sharded [[],[0,1]], s32[2]) {
  %3 = sharding_constraint %0 {axes = [1,0], dims = [0,1]} : f32[4,6]
  %4, %5 = all_reduce_sum %0, %1 {axes = [0,1]} : f32[4,6], s32[2]
  %6 = all_reduce_product %0 {axes = [1]} : f32[4,6]
  %7 = all_reduce_min %0 {axes = [0]} : f32[4,6]
  %8 = all_reduce_max %0 {axes = [0]} : f32[4,6]
  %9 = all_reduce_and %0 {axes = [0]} : f32[4,6]
  %10 = all_reduce_or %1 {axes = [0,1]} : s32[2]
  %11 = all_gather %0 {axes = [1,0], dim = 1} : f32[4,24]
  %12 = reduce_scatter %0 {axes = [0,1], dim = 0} : f32[1,6]
  %13 = all_to_all %0 {axes = [0], split = 0, concat = 1} : f32[2,12]
  %14 = collective_permute %0 {axes = [0,1], sources = [0,1,2], targets = [1,2,3]} : f32[4,6]
  %15 = collective_broadcast %1 {axes = [1], root = 1} : s32[2]
  %16, %17 = barrier %0, %1 {axes = [0,1]} : f32[4,6], s32[2]
  return %16, %17
}
