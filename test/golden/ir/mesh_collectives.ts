// passes: verify
graph @t mesh @m ["x"=2,"y"=2] partitioned coordinates (%0: f32[2,4] sharded [[0],[]], %1: f16[4], %2: s32[2]) -> (f32[4,4], f16[4], f32[1,4], f32[1,8], f32[2,4], f32[2,4], f32[2,4], s32[2]) {
  %3 = all_gather %0 {axes = [0], dim = 0} : f32[4,4]
  %4, %5 = all_reduce_sum %1, %1 {axes = [0,1]} : f16[4], f16[4]
  %6 = reduce_scatter %0 {axes = [1], dim = 0} : f32[1,4]
  %7 = all_to_all %0 {axes = [1], split = 0, concat = 1} : f32[1,8]
  %8 = collective_permute %0 {axes = [0], sources = [1], targets = [0]} : f32[2,4]
  %9 = collective_broadcast %0 {axes = [1], root = 1} : f32[2,4]
  %10 = all_reduce_or %0 {axes = [1]} : f32[2,4]
  %11 = all_reduce_max %2 {axes = [1]} : s32[2]
  %12 = barrier %11 {axes = [0]} : s32[2]
  return %3, %5, %6, %7, %8, %9, %10, %12
}
