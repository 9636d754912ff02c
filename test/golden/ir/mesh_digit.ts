graph @main mesh @3d [2] (%0: f32[4] sharded [[0]]) -> (f32[4]) {
  return %0
}
