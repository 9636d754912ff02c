// passes: verify
graph @main(%0: u8[3], %1: u16[4], %2: u64[], %3: s8[3], %4: bf16[3], %5: f16[2,2], %6: f32[0,2]) -> (u8[3], u8[3], s8[3], u8[3], s64[], f16[2], bf16[3], f16[2,2], u16[1], f32[0,3], u64[], u8[3]) {
  %7 = abs %0 : u8[3]
  %8 = sign %0 : u8[3]
  %9 = floor %3 : s8[3]
  %10 = right_shift %0, %0 : u8[3]
  %11 = argmax %4 {axis = 0, high = false} : s64[]
  %12 = reduce_sum %5 {axes = [1]} : f16[2]
  %13 = cumulative_sum %4 {axis = 0, reverse = false} : bf16[3]
  %14 = dot_general %5, %5 {lhs_contract = [1], lhs_batch = [], rhs_contract = [0], rhs_batch = []} : f16[2,2]
  %15 = dynamic_slice %1, %2 {shape = [1]} : u16[1]
  %16 = iota {axis = -1} : s32[3]
  %17 = take %6, %16 {axis = 1} : f32[0,3]
  %18 = reshape %2 {shape = []} : u64[]
  %19 = is_nan %0 : u8[3]
  return %7, %8, %9, %10, %11, %12, %13, %14, %15, %17, %18, %19
}
