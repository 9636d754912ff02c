// passes: report
// The sum of two gradients is one message, and the sum over a dim of one comes before it is summed over the mesh.
graph @t mesh [4] (%x: f32[64,32] sharded [[0],[]], %d: f32[64,16] sharded [[0],[]], %e: f32[64,16] sharded [[0],[]], %s: f32[32,16]) -> (f32[32,16], f32[16], f32[16,32] sharded [[0],[]]) {
  %1 = dot_general %x, %d {lhs_contract = [0], lhs_batch = [], rhs_contract = [0], rhs_batch = []} : f32[32,16]
  %2 = dot_general %x, %e {lhs_contract = [0], lhs_batch = [], rhs_contract = [0], rhs_batch = []} : f32[32,16]
  %3 = multiply %2, %s : f32[32,16]
  %4 = add %1, %3 : f32[32,16]
  %5 = dot_general %x, %e {lhs_contract = [0], lhs_batch = [], rhs_contract = [0], rhs_batch = []} : f32[32,16]
  %6 = negate %5 : f32[32,16]
  %7 = reduce_sum %6 {axes = [0]} : f32[16]
  %8 = dot_general %x, %d {lhs_contract = [0], lhs_batch = [], rhs_contract = [0], rhs_batch = []} : f32[32,16]
  %9 = transpose %8 {axes = [1,0]} : f32[16,32]
  return %4, %7, %9
}
