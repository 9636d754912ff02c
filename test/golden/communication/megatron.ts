// passes: report
// sends: 1 collective, 131072 bytes
graph @main mesh @mesh ["data"=2,"model"=4] (%0: f32[128,512] sharded [[0],[]], %1: f32[512,2048] sharded [[],[1]], %2: f32[2048,512] sharded [[1],[]]) -> (f32[128,512] sharded [[0],[]]) {
  %3 = dot_general %0, %1 {lhs_contract = [1], lhs_batch = [], rhs_contract = [0], rhs_batch = []} : f32[128,2048]
  %4 = constant 0.0 : f32[128,2048]
  %5 = max %3, %4 : f32[128,2048]
  %6 = dot_general %5, %2 {lhs_contract = [1], lhs_batch = [], rhs_contract = [0], rhs_batch = []} : f32[128,512]
  return %6
}
