// checks bits
graph @main(%0: f32[], %1: f32[40001]) -> (f32[40001], f32[], f32[40001]) {
  %2 = broadcast %0 {shape = [40001], axes = []} : f32[40001]
  %3 = negate %2 : f32[40001]
  %4 = sin %3 : f32[40001]
  %5 = round %4 : f32[40001]
  %6 = multiply %5, %5 : f32[40001]
  %7 = reduce_sum %6 {axes = [0]} : f32[]
  %8 = multiply %5, %1 : f32[40001]
  return %5, %7, %8
}
