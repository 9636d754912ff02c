// checks bits passes: dots,dce
// Transposes of a product's rows, after a bias and the like, become transposes of its left operand where that is smaller,
// and where it is one already; else they stay. So do those of columns, and of what another op reads, too.
graph @main(%0: f32[4,6,3], %1: f32[3,20], %2: f32[20], %3: f32[6,4,30], %4: f32[30,20], %5: f32[2,3,4,5], %6: f32[2,5,9], %7: f32[4,6,30]) -> (f32[6,4,20], f32[6,4,20], f32[2,4,3,9], f32[6,4,20], f32[6,4,20], f32[6,4,20], f32[4,6,20], f32[20,4,6]) {
  %8 = broadcast %2 {shape = [4,6,20], axes = [2]} : f32[4,6,20]
  %9 = constant 0.0 : f32[4,6,20]
  %34 = abs %0 : f32[4,6,3]
  %10 = dot_general %34, %1 {lhs_contract = [2], lhs_batch = [], rhs_contract = [0], rhs_batch = []} : f32[4,6,20]
  %11 = add %10, %8 : f32[4,6,20]
  %12 = max %9, %11 : f32[4,6,20]
  %13 = transpose %12 {axes = [1,0,2]} : f32[6,4,20]
  %14 = transpose %3 {axes = [1,0,2]} : f32[4,6,30]
  %15 = dot_general %14, %4 {lhs_contract = [2], lhs_batch = [], rhs_contract = [0], rhs_batch = []} : f32[4,6,20]
  %16 = add %15, %8 : f32[4,6,20]
  %17 = transpose %16 {axes = [1,0,2]} : f32[6,4,20]
  %18 = dot_general %5, %6 {lhs_contract = [3], lhs_batch = [0], rhs_contract = [1], rhs_batch = [0]} : f32[2,3,4,9]
  %19 = abs %18 : f32[2,3,4,9]
  %20 = transpose %19 {axes = [0,2,1,3]} : f32[2,4,3,9]
  %21 = dot_general %7, %4 {lhs_contract = [2], lhs_batch = [], rhs_contract = [0], rhs_batch = []} : f32[4,6,20]
  %22 = add %21, %8 : f32[4,6,20]
  %23 = transpose %22 {axes = [1,0,2]} : f32[6,4,20]
  %26 = dot_general %0, %1 {lhs_contract = [2], lhs_batch = [], rhs_contract = [0], rhs_batch = []} : f32[4,6,20]
  %24 = abs %26 : f32[4,6,20]
  %25 = transpose %24 {axes = [1,0,2]} : f32[6,4,20]
  %27 = multiply %26, %8 : f32[4,6,20]
  %28 = transpose %27 {axes = [1,0,2]} : f32[6,4,20]
  %29 = negate %27 : f32[4,6,20]
  %30 = negate %0 : f32[4,6,3]
  %31 = dot_general %30, %1 {lhs_contract = [2], lhs_batch = [], rhs_contract = [0], rhs_batch = []} : f32[4,6,20]
  %32 = add %31, %8 : f32[4,6,20]
  %33 = transpose %32 {axes = [2,0,1]} : f32[20,4,6]
  return %13, %17, %20, %23, %25, %28, %29, %33
}
