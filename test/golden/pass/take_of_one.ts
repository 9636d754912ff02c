// checks bits passes: simplify
// An axis of one element is read at that element, whatever the indices are.
graph @main(%0: f32[4,1,3], %1: s32[2,5], %2: s64[], %3: f32[4,6,3], %4: f32[1]) -> (f32[4,2,5,3], f32[4,3], f32[2,5], f32[4,6,3]) {
  %5 = take %0, %1 {axis = 1} : f32[4,2,5,3]
  %6 = take %0, %2 {axis = 1} : f32[4,3]
  %7 = take %4, %1 {axis = 0} : f32[2,5]
  %8 = convert %3 : s32[4,6,3]
  %9 = take_along_axis %0, %8 {axis = 1} : f32[4,6,3]
  return %5, %6, %7, %9
}
