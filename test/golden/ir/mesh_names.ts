// passes: verify
graph @t mesh @"my mesh" ["data"=2,"the \22model\22"=4] (%0: f32[8,16] sharded [[0],[1]], %1: f32[16,4]) -> (f32[8,4] sharded [[0],[]]) {
  %2 = sharding_constraint %1 {axes = [1], dims = [0]} : f32[16,4]
  %3 = dot_general %0, %2 {lhs_contract = [1], lhs_batch = [], rhs_contract = [0], rhs_batch = []} : f32[8,4]
  return %3
}
