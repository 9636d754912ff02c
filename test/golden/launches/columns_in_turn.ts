// checks bits passes: launches
// The columns of rows take turns where few columns come after the reduced dim: a row's maximum and sum are of each column.
graph @main(%0: f32[5,7,2], %1: f32[5,2], %2: f64[3,40,4], %3: f64[3,4], %4: bf16[2,33,8], %5: bf16[2,8], %6: s32[3,5,16], %7: s32[3,16], %8: f16[2,2,2], %9: f16[2,2], %10: f32[1,70,16], %11: f32[1,16], %12: u16[2,9,4], %13: u16[2,4]) -> (f32[5,7,2], f32[5,2], f64[3,40,4], f64[3,4], bf16[2,33,8], bf16[2,8], s32[3,5,16], s32[3,16], f16[2,2,2], f16[2,2], f32[1,70,16], f32[1,16], u16[2,9,4], u16[2,4]) {
  %100, %101 = fusion %0, %1 {kind = 0} {
    body(%110: f32[5,7,2], %111: f32[5,2]) {
      %112 = reduce_max %110 {axes = [1]} : f32[5,2]
      %113 = broadcast %112 {shape = [5,7,2], axes = [0,2]} : f32[5,7,2]
      %114 = subtract %110, %113 : f32[5,7,2]
      %115 = broadcast %111 {shape = [5,7,2], axes = [0,2]} : f32[5,7,2]
      %116 = multiply %114, %115 : f32[5,7,2]
      %117 = reduce_sum %116 {axes = [1]} : f32[5,2]
      %118 = broadcast %117 {shape = [5,7,2], axes = [0,2]} : f32[5,7,2]
      %119 = subtract %116, %118 : f32[5,7,2]
      return %119, %117
    }
  } : f32[5,7,2], f32[5,2]
  %200, %201 = fusion %2, %3 {kind = 0} {
    body(%210: f64[3,40,4], %211: f64[3,4]) {
      %212 = reduce_max %210 {axes = [1]} : f64[3,4]
      %213 = broadcast %212 {shape = [3,40,4], axes = [0,2]} : f64[3,40,4]
      %214 = subtract %210, %213 : f64[3,40,4]
      %215 = broadcast %211 {shape = [3,40,4], axes = [0,2]} : f64[3,40,4]
      %216 = multiply %214, %215 : f64[3,40,4]
      %217 = reduce_sum %216 {axes = [1]} : f64[3,4]
      %218 = broadcast %217 {shape = [3,40,4], axes = [0,2]} : f64[3,40,4]
      %219 = subtract %216, %218 : f64[3,40,4]
      return %219, %217
    }
  } : f64[3,40,4], f64[3,4]
  %300, %301 = fusion %4, %5 {kind = 0} {
    body(%310: bf16[2,33,8], %311: bf16[2,8]) {
      %312 = reduce_max %310 {axes = [1]} : bf16[2,8]
      %313 = broadcast %312 {shape = [2,33,8], axes = [0,2]} : bf16[2,33,8]
      %314 = subtract %310, %313 : bf16[2,33,8]
      %315 = broadcast %311 {shape = [2,33,8], axes = [0,2]} : bf16[2,33,8]
      %316 = multiply %314, %315 : bf16[2,33,8]
      %317 = reduce_sum %316 {axes = [1]} : bf16[2,8]
      %318 = broadcast %317 {shape = [2,33,8], axes = [0,2]} : bf16[2,33,8]
      %319 = subtract %316, %318 : bf16[2,33,8]
      return %319, %317
    }
  } : bf16[2,33,8], bf16[2,8]
  %400, %401 = fusion %6, %7 {kind = 0} {
    body(%410: s32[3,5,16], %411: s32[3,16]) {
      %412 = reduce_max %410 {axes = [1]} : s32[3,16]
      %413 = broadcast %412 {shape = [3,5,16], axes = [0,2]} : s32[3,5,16]
      %414 = subtract %410, %413 : s32[3,5,16]
      %415 = broadcast %411 {shape = [3,5,16], axes = [0,2]} : s32[3,5,16]
      %416 = multiply %414, %415 : s32[3,5,16]
      %417 = reduce_sum %416 {axes = [1]} : s32[3,16]
      %418 = broadcast %417 {shape = [3,5,16], axes = [0,2]} : s32[3,5,16]
      %419 = subtract %416, %418 : s32[3,5,16]
      return %419, %417
    }
  } : s32[3,5,16], s32[3,16]
  %500, %501 = fusion %8, %9 {kind = 0} {
    body(%510: f16[2,2,2], %511: f16[2,2]) {
      %512 = reduce_max %510 {axes = [1]} : f16[2,2]
      %513 = broadcast %512 {shape = [2,2,2], axes = [0,2]} : f16[2,2,2]
      %514 = subtract %510, %513 : f16[2,2,2]
      %515 = broadcast %511 {shape = [2,2,2], axes = [0,2]} : f16[2,2,2]
      %516 = multiply %514, %515 : f16[2,2,2]
      %517 = reduce_sum %516 {axes = [1]} : f16[2,2]
      %518 = broadcast %517 {shape = [2,2,2], axes = [0,2]} : f16[2,2,2]
      %519 = subtract %516, %518 : f16[2,2,2]
      return %519, %517
    }
  } : f16[2,2,2], f16[2,2]
  %600, %601 = fusion %10, %11 {kind = 0} {
    body(%610: f32[1,70,16], %611: f32[1,16]) {
      %612 = reduce_max %610 {axes = [1]} : f32[1,16]
      %613 = broadcast %612 {shape = [1,70,16], axes = [0,2]} : f32[1,70,16]
      %614 = subtract %610, %613 : f32[1,70,16]
      %615 = broadcast %611 {shape = [1,70,16], axes = [0,2]} : f32[1,70,16]
      %616 = multiply %614, %615 : f32[1,70,16]
      %617 = reduce_sum %616 {axes = [1]} : f32[1,16]
      %618 = broadcast %617 {shape = [1,70,16], axes = [0,2]} : f32[1,70,16]
      %619 = subtract %616, %618 : f32[1,70,16]
      return %619, %617
    }
  } : f32[1,70,16], f32[1,16]
  %700, %701 = fusion %12, %13 {kind = 0} {
    body(%710: u16[2,9,4], %711: u16[2,4]) {
      %712 = reduce_max %710 {axes = [1]} : u16[2,4]
      %713 = broadcast %712 {shape = [2,9,4], axes = [0,2]} : u16[2,9,4]
      %714 = subtract %710, %713 : u16[2,9,4]
      %715 = broadcast %711 {shape = [2,9,4], axes = [0,2]} : u16[2,9,4]
      %716 = multiply %714, %715 : u16[2,9,4]
      %717 = reduce_sum %716 {axes = [1]} : u16[2,4]
      %718 = broadcast %717 {shape = [2,9,4], axes = [0,2]} : u16[2,9,4]
      %719 = subtract %716, %718 : u16[2,9,4]
      return %719, %717
    }
  } : u16[2,9,4], u16[2,4]
  return %100, %101, %200, %201, %300, %301, %400, %401, %500, %501, %600, %601, %700, %701
}
