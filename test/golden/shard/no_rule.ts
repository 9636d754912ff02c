// passes: report
graph @t mesh [2] (%x: f32[4,4] sharded [[0],[]], %i: s32[2,1], %u: f32[2,4]) -> (f32[4,4] sharded [[],[0]], f32[4,4]) {
  %1 = indexed_add %x, %i, %u {axes = [0]} : f32[4,4]
  %2 = iota {axis = 1} : f32[4,4]
  %3 = add %2, %x : f32[4,4]
  return %1, %3
}
