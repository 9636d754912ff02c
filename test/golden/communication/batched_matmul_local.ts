// passes: combine
// sends: 0 collectives, 0 bytes
graph @main mesh @mesh ["data"=4] partitioned (%0: f32[8,64,32] sharded [[0],[],[]], %1: f32[8,32,64] sharded [[0],[],[]]) -> (f32[8,64,64] sharded [[0],[],[]]) {
  %2 = dot_general %0, %1 {lhs_contract = [2], lhs_batch = [0], rhs_contract = [1], rhs_batch = [0]} : f32[8,64,64]
  return %2
}
