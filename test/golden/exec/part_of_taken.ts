// checks bits
// counts: bytes of temporaries 64
// A result that takes the memory of a donated argument does so, although a part of the argument is read after that: the
// part is copied.
graph @main(%0: f32[1000,8]) -> (f32[1000,8]) {
  %1 = constant 5 : s32[]
  %2 = constant 0 : s32[]
  %3 = slice %0 {start = [0,0], limit = [1,8], stride = [1,1]} : f32[1,8]
  %4 = put_slice %0, %3, %1, %2 : f32[1000,8]
  return %4
}
