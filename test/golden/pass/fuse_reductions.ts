// same passes: fuse
// Reductions that read the same over the same rows are one kernel, whichever ops read their results.
graph @main(%0: f32[200,100], %1: f32[100,100], %2: f32[200,100]) -> (f32[], f32[], f32[200,100], f32[100], f32[100], f32[100], s64[200], f32[200], f32[200,100], s64[], f32[100], f32[100]) {
  %4 = reduce_min %0 {axes = [0,1]} : f32[]
  %5 = reduce_max %0 {axes = [0,1]} : f32[]
  %6 = subtract %5, %4 : f32[]
  %7 = broadcast %4 {shape = [200,100], axes = []} : f32[200,100]
  %8 = subtract %0, %7 : f32[200,100]
  %9 = dot_general %8, %1 {lhs_contract = [1], lhs_batch = [], rhs_contract = [0], rhs_batch = []} : f32[200,100]
  // by columns, the second with the first one's result
  %10 = reduce_sum %9 {axes = [0]} : f32[100]
  %11 = constant 200.0 : f32[100]
  %12 = divide %10, %11 : f32[100]
  %13 = multiply %9, %9 : f32[200,100]
  %14 = reduce_sum %13 {axes = [0]} : f32[100]
  %15 = divide %14, %11 : f32[100]
  %16 = multiply %12, %12 : f32[100]
  %17 = subtract %15, %16 : f32[100]
  // by columns too, but it needs the first one's result for each point
  %18 = broadcast %12 {shape = [200,100], axes = [1]} : f32[200,100]
  %19 = subtract %9, %18 : f32[200,100]
  %20 = reduce_max %19 {axes = [0]} : f32[100]
  // by rows, with what has an element for each point
  %21 = exp %2 : f32[200,100]
  %22 = argmax %2 {axis = 1, high = false} : s64[200]
  %23 = reduce_product %21 {axes = [1]} : f32[200]
  %24 = dot_general %21, %1 {lhs_contract = [1], lhs_batch = [], rhs_contract = [0], rhs_batch = []} : f32[200,100]
  // of long rows, an index does not go with sums
  %25 = argmax %2 {axis = -1, high = false} : s64[]
  // the same numbers of elements, another order
  %26 = transpose %1 {axes = [1,0]} : f32[100,100]
  %27 = reduce_sum %26 {axes = [0]} : f32[100]
  %28 = reduce_max %1 {axes = [0]} : f32[100]
  return %6, %4, %8, %12, %17, %20, %22, %23, %24, %25, %27, %28
}
