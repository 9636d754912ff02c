// passes: report
graph @gathered mesh [2] (%0: f32[8,4] sharded [[0],[]], %1: s32[6,1] sharded [[0],[]], %2: f32[6,4] sharded [[0],[]], %3: f32[8,4] sharded [[],[0]])
    -> (f32[8,4], f32[8,4], c64[8,4], f32[8,4], f32[8,4]) {
  %4 = sort %0 {axis = 0, descending = false} : f32[8,4]
  %5 = cumulative_sum %0 {axis = 0, reverse = false} : f32[8,4]
  %6 = fft %0 {axis = 0, length = 8} : c64[8,4]
  %7 = indexed_put %0, %1, %2 {axes = [0]} : f32[8,4]
  %8 = sort %3 {axis = 0, descending = false} : f32[8,4]
  return %4, %5, %6, %7, %8
}
