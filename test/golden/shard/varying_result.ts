// fails passes: combine
graph @varies mesh [2,2] partitioned (%x: f32[4] sharded [[0,1]]) -> (f32[4] sharded [[0]]) {
  %0 = all_reduce_sum %x {axes = [0]} : f32[4]
  return %0
}
