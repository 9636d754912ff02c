// passes: report
graph @t mesh [2,2] (%x: f32[8,6,4] sharded [[0],[],[1]]) -> (f32[4,8,6] sharded [[1],[],[0]], f32[8,6,4] sharded [[],[],[]]) {
  %1 = transpose %x {axes = [2,0,1]} : f32[4,8,6]
  %2 = exp %1 : f32[4,8,6]
  %3 = negate %x : f32[8,6,4]
  return %2, %3
}
