// checks bits of plain
// counts: steps 3, kernels 2, bytes of temporaries 256
// A take of more elements than a slice has reads through it where its rows are long, and from a copy where they are short.
graph @main(%0: f16[18,100], %1: s32[32], %2: f16[20,12], %3: s32[64]) -> (f16[32,100], f16[64,12]) {
  %4 = slice %0 {start = [0,0], limit = [18,100], stride = [2,1]} : f16[9,100]
  %5 = take %4, %1 {axis = 0} : f16[32,100]
  %6 = slice %2 {start = [0,0], limit = [20,12], stride = [2,1]} : f16[10,12]
  %7 = take %6, %3 {axis = 0} : f16[64,12]
  return %5, %7
}
