// passes: combine
// sends: 1 collective, 544 bytes
graph @main mesh @mesh ["data"=4] partitioned (%0: f32[1024,16] sharded [[0],[]], %1: f32[8,16]) -> (f32[8,16] sharded [[],[]]) {
  %2 = multiply %1, %1 : f32[8,16]
  %3 = reduce_sum %2 {axes = [1]} : f32[8]
  %4 = dot_general %0, %1 {lhs_contract = [1], lhs_batch = [], rhs_contract = [1], rhs_batch = []} : f32[1024,8]
  %5 = constant 2.0 : f32[1024,8]
  %6 = multiply %4, %5 : f32[1024,8]
  %7 = broadcast %3 {shape = [1024,8], axes = [1]} : f32[1024,8]
  %8 = subtract %7, %6 : f32[1024,8]
  %9 = argmin %8 {axis = 1, high = false} : s32[1024]
  %10 = iota {axis = 0} : s32[8]
  %11 = reshape %9 {shape = [1024,1]} : s32[1024,1]
  %12 = broadcast %11 {shape = [1024,8], axes = [0,1]} : s32[1024,8]
  %13 = broadcast %10 {shape = [1024,8], axes = [1]} : s32[1024,8]
  %14 = equal %12, %13 : u8[1024,8]
  %15 = convert %14 : f32[1024,8]
  %16 = dot_general %15, %0 {lhs_contract = [0], lhs_batch = [], rhs_contract = [0], rhs_batch = []} : f32[8,16]
  %17 = reduce_sum %15 {axes = [0]} : f32[8]
  %18, %19 = all_reduce_sum %16, %17 {axes = [0]} : f32[8,16], f32[8]
  %20 = constant 1.0 : f32[8]
  %21 = max %19, %20 : f32[8]
  %22 = reshape %21 {shape = [8,1]} : f32[8,1]
  %23 = broadcast %22 {shape = [8,16], axes = [0,1]} : f32[8,16]
  %24 = divide %18, %23 : f32[8,16]
  return %24
}
