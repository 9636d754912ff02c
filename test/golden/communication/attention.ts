// passes: report
// sends: 1 collective, 524288 bytes
graph @main mesh @mesh ["model"=4] (%0: f32[8,64,256] sharded [[],[],[]], %1: f32[256,8,32] sharded [[],[0],[]], %2: f32[256,8,32] sharded [[],[0],[]], %3: f32[256,8,32] sharded [[],[0],[]], %4: f32[8,32,256] sharded [[0],[],[]]) -> (f32[8,64,256] sharded [[],[],[]]) {
  %5 = dot_general %0, %1 {lhs_contract = [2], lhs_batch = [], rhs_contract = [0], rhs_batch = []} : f32[8,64,8,32]
  %6 = dot_general %0, %2 {lhs_contract = [2], lhs_batch = [], rhs_contract = [0], rhs_batch = []} : f32[8,64,8,32]
  %7 = dot_general %0, %3 {lhs_contract = [2], lhs_batch = [], rhs_contract = [0], rhs_batch = []} : f32[8,64,8,32]
  %8 = dot_general %5, %6 {lhs_contract = [3], lhs_batch = [0,2], rhs_contract = [3], rhs_batch = [0,2]} : f32[8,8,64,64]
  %9 = constant 5.656854 : f32[8,8,64,64]
  %10 = divide %8, %9 : f32[8,8,64,64]
  %11 = reduce_max %10 {axes = [3]} : f32[8,8,64]
  %12 = reshape %11 {shape = [8,8,64,1]} : f32[8,8,64,1]
  %13 = reshape %12 {shape = [8,8,64,1]} : f32[8,8,64,1]
  %14 = broadcast %13 {shape = [8,8,64,64], axes = [0,1,2,3]} : f32[8,8,64,64]
  %15 = subtract %10, %14 : f32[8,8,64,64]
  %16 = exp %15 : f32[8,8,64,64]
  %17 = reduce_sum %16 {axes = [3]} : f32[8,8,64]
  %18 = reshape %17 {shape = [8,8,64,1]} : f32[8,8,64,1]
  %19 = broadcast %18 {shape = [8,8,64,64], axes = [0,1,2,3]} : f32[8,8,64,64]
  %20 = divide %16, %19 : f32[8,8,64,64]
  %21 = dot_general %20, %7 {lhs_contract = [3], lhs_batch = [0,1], rhs_contract = [1], rhs_batch = [0,2]} : f32[8,8,64,32]
  %22 = dot_general %21, %4 {lhs_contract = [1,3], lhs_batch = [], rhs_contract = [0,1], rhs_batch = []} : f32[8,64,256]
  return %22
}
