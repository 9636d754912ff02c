// stablehlo
graph @nested(%0: s32[], %1: f32[4]) -> (f32[4]) {
  %2, %3 = while %0, %1 {
    condition(%a: s32[], %b: f32[4]) {
      %limit = constant 10 : s32[]
      %c = less %a, %limit : u8[]
      return %c
    }
    body(%a1: s32[], %b1: f32[4]) {
      %one = constant 1 : s32[]
      %next = add %a1, %one : s32[]
      %zero = constant 0 : s32[]
      %is_zero = equal %a1, %zero : u8[]
      %out = cond %is_zero, %b1 {
        true(%t: f32[4]) {
          %w = while %t {
            condition(%p: f32[4]) {
              %false = constant 0 : u8[]
              return %false
            }
            body(%q: f32[4]) {
              return %q
            }
          } : f32[4]
          return %w
        }
        false(%f: f32[4]) {
          %n = negate %f : f32[4]
          return %n
        }
      } : f32[4]
      return %next, %out
    }
  } : s32[], f32[4]
  return %3
}
