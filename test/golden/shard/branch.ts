// passes: report
graph @t mesh [2] (%p: u8[], %x: f32[8,4] sharded [[0],[]]) -> (f32[8,4] sharded [[],[0]]) {
  %1 = cond %p, %x {
    true(%2: f32[8,4]) {
      %3 = iota {axis = 1} : f32[8,4]
      %4 = add %2, %3 : f32[8,4]
      return %4
    }
    false(%5: f32[8,4]) {
      %6 = iota {axis = 0} : f32[8,4]
      return %6
    }
  } : f32[8,4]
  return %1
}
