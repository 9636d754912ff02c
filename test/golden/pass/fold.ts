// same passes: fold,dce
graph @main() -> (f32[3], s32[4]) {
  %0 = constant 2.0 : f32[3]
  %1 = constant 3.0 : f32[3]
  %2 = add %0, %1 : f32[3]
  %3 = literal "01000000020000000300000004000000" : s32[4]
  %4 = negate %3 : s32[4]
  return %2, %4
}
