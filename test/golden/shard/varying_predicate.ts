// fails passes: combine
graph @some mesh [2] partitioned coordinates (%x: f32[4], %c: s32[1]) -> (f32[4] sharded [[0]]) {
  %0 = slice %c {start = [0], limit = [1], stride = [1]} : s32[1]
  %1 = reshape %0 {shape = []} : s32[]
  %2 = constant 0 : s32[]
  %3 = equal %1, %2 : u8[]
  %4 = cond %3, %x {
    true(%5: f32[4]) {
      %6 = all_reduce_sum %5 {axes = [0]} : f32[4]
      return %6
    }
    false(%7: f32[4]) {
      return %7
    }
  } : f32[4]
  return %4
}
