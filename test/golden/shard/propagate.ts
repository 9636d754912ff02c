// passes: propagate
graph @t mesh [2,3] (%x: f32[4,6] sharded [[0],[]], %y: f32[6,9]) -> (f32[36], f32[4] sharded [[0]]) {
  %1 = sharding_constraint %y {axes = [1], dims = [1]} : f32[6,9]
  %2 = dot_general %x, %1 {lhs_contract = [1], lhs_batch = [], rhs_contract = [0], rhs_batch = []} : f32[4,9]
  %3 = reshape %2 {shape = [36]} : f32[36]
  %4 = reduce_sum %2 {axes = [1]} : f32[4]
  return %3, %4
}
