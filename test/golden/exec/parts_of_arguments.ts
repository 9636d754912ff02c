// checks bits
// counts: steps 4
// Rows of an argument one behind the other are read where they are: by routines, and as parts of parts.
graph @main(%0: f32[6,8], %1: f32[8,8], %2: f32[40]) -> (f32[4,8], f32[3,8], f32[5], f32[]) {
  %3 = slice %0 {start = [2,0], limit = [6,8], stride = [1,1]} : f32[4,8]
  %4 = slice %3 {start = [1,0], limit = [4,8], stride = [1,1]} : f32[3,8]
  %5 = dot_general %3, %1 {lhs_contract = [1], lhs_batch = [], rhs_contract = [0], rhs_batch = []} : f32[4,8]
  %6 = sort %4 {axis = 1, descending = false} : f32[3,8]
  %7 = slice %2 {start = [7], limit = [12], stride = [1]} : f32[5]
  %8 = sort %7 {axis = 0, descending = true} : f32[5]
  %9 = reduce_sum %2 {axes = [0]} : f32[]
  return %5, %6, %8, %9
}
