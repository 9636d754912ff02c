// passes: report
graph @t mesh [4] (%table: f32[1024,8] sharded [[0],[]], %i: s32[16], %u: f32[16,8], %j: s32[16,1], %logits: f32[16,1024] sharded [[],[0]]) -> (f32[16,8], f32[1024,8], s64[16]) {
  %1 = take %table, %i {axis = 0} : f32[16,8]
  %2 = indexed_add %table, %j, %u {axes = [0]} : f32[1024,8]
  %3 = argmax %logits {axis = 1, high = false} : s64[16]
  return %1, %2, %3
}
