// Meshes and shardings are printed as they are read.
graph @t mesh [2,1,3] (%0: f32[4,6] sharded [[0,1],[2]], %1: f32[]) -> (f32[4,6] sharded [[],[2,0]], f32[]) {
  return %0, %1
}
