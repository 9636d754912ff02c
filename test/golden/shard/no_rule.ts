// passes: report
graph @t mesh [2] (%x: f32[4,4] sharded [[0],[]]) -> (f32[4,4] sharded [[],[0]], f32[4,4]) {
  %1 = custom_call %x "target(a = 1)" {
    types() {
      %2 = constant 0.0 : f32[4,4]
      return %2
    }
  } : f32[4,4]
  %3 = iota {axis = 1} : f32[4,4]
  %4 = add %3, %x : f32[4,4]
  return %1, %4
}
