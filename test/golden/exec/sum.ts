// checks bits
graph @main(%0: f32[37,1000]) -> (f32[37], f32[1000], f32[]) {
  %1 = reduce_sum %0 {axes = [1]} : f32[37]
  %2 = reduce_sum %0 {axes = [0]} : f32[1000]
  %3 = reduce_sum %0 {axes = [0,1]} : f32[]
  return %1, %2, %3
}
