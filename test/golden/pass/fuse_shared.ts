// checks bits of plain passes: pipeline,count
// tanh(x * w + b) three times, the last with subtract: two layers are alike, and so are two sums beside them that read
// one value twice and two values. Fusions that do the same share a region.
graph @main(%0: f32[8], %1: f32[8], %2: f32[8]) -> (f32[8], f32[], f32[]) {
  %3 = add %0, %1 : f32[8]
  %4 = tanh %3 : f32[8]
  %5 = cumulative_sum %4 {axis = 0, reverse = false} : f32[8]
  %6 = add %5, %2 : f32[8]
  %7 = tanh %6 : f32[8]
  %8 = cumulative_sum %7 {axis = 0, reverse = false} : f32[8]
  %9 = subtract %8, %2 : f32[8]
  %10 = tanh %9 : f32[8]
  %11 = cumulative_sum %10 {axis = 0, reverse = false} : f32[8]
  %12 = multiply %5, %8 : f32[8]
  %13 = reduce_sum %12 {axes = [0]} : f32[]
  %14 = multiply %11, %11 : f32[8]
  %15 = reduce_sum %14 {axes = [0]} : f32[]
  return %11, %13, %15
}
