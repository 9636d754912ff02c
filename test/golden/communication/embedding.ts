// passes: report
// sends: 1 collective, 2097152 bytes
graph @main mesh @mesh ["model"=4] (%0: f32[32000,256] sharded [[0],[]], %1: s32[64,32] sharded [[],[]]) -> (f32[64,32,256] sharded [[],[],[]]) {
  %2 = take %0, %1 {axis = 0} : f32[64,32,256]
  return %2
}
