// passes: combine
// sends: 3 collectives, 48 bytes
graph @axes mesh [2,3] partitioned coordinates (%x: f32[4] sharded [[0]], %n: s32[], %c: s32[2]) -> (f32[4] sharded [[0]], f32[4] sharded [[0,1]], f32[4] sharded [[]]) {
  %0, %1, %2, %3 = while %x, %x, %n, %c {
    condition(%a: f32[4], %b: f32[4], %m: s32[], %d: s32[2]) {
      %4 = constant 0 : s32[]
      %5 = greater %m, %4 : u8[]
      return %5
    }
    body(%a1: f32[4], %b1: f32[4], %m1: s32[], %d1: s32[2]) {
      %6 = slice %d1 {start = [1], limit = [2], stride = [1]} : s32[1]
      %7 = convert %6 : f32[1]
      %8 = broadcast %7 {shape = [4], axes = [0]} : f32[4]
      %9 = add %b1, %8 : f32[4]
      %10 = all_reduce_sum %9 {axes = [1]} : f32[4]
      %11 = add %10, %a1 : f32[4]
      %12 = constant 1 : s32[]
      %13 = subtract %m1, %12 : s32[]
      return %11, %9, %13, %d1
    }
  } : f32[4], f32[4], s32[], s32[2]
  %14 = all_reduce_max %1 {axes = [1]} : f32[4]
  %15 = all_gather %14 {axes = [0], dim = 0} : f32[8]
  %16 = slice %15 {start = [2], limit = [6], stride = [1]} : f32[4]
  return %0, %1, %16
}
