// stablehlo
graph @main(%0: f32[2,3], %1: f32[2,3], %2: s32[2,3], %3: s32[2,3], %4: f32[], %5: s32[], %6: u8[2,3], %7: s64[4], %8: u8[]) -> (f32[2,3], s32[]) {
  %9 = exp %0 : f32[2,3]
  %10 = expm1 %0 : f32[2,3]
  %11 = log %0 : f32[2,3]
  %12 = log1p %0 : f32[2,3]
  %13 = sigmoid %0 : f32[2,3]
  %14 = cos %0 : f32[2,3]
  %15 = sin %0 : f32[2,3]
  %16 = tan %0 : f32[2,3]
  %17 = cosh %0 : f32[2,3]
  %18 = sinh %0 : f32[2,3]
  %19 = tanh %0 : f32[2,3]
  %20 = acos %0 : f32[2,3]
  %21 = asin %0 : f32[2,3]
  %22 = atan %0 : f32[2,3]
  %23 = acosh %0 : f32[2,3]
  %24 = asinh %0 : f32[2,3]
  %25 = atanh %0 : f32[2,3]
  %26 = sqrt %0 : f32[2,3]
  %27 = rsqrt %0 : f32[2,3]
  %28 = cbrt %0 : f32[2,3]
  %29 = erf %0 : f32[2,3]
  %30 = erfc %0 : f32[2,3]
  %31 = erf_inv %0 : f32[2,3]
  %32 = abs %0 : f32[2,3]
  %33 = negate %0 : f32[2,3]
  %34 = sign %0 : f32[2,3]
  %35 = ceil %0 : f32[2,3]
  %36 = floor %0 : f32[2,3]
  %37 = round %0 : f32[2,3]
  %38 = bitwise_not %2 : s32[2,3]
  %39 = count_leading_zeros %2 : s32[2,3]
  %40 = population_count %2 : s32[2,3]
  %41 = is_nan %0 : u8[2,3]
  %42 = is_infinity %0 : u8[2,3]
  %43 = add %0, %1 : f32[2,3]
  %44 = subtract %0, %1 : f32[2,3]
  %45 = multiply %0, %1 : f32[2,3]
  %46 = divide %0, %1 : f32[2,3]
  %47 = quotient %2, %3 : s32[2,3]
  %48 = remainder %0, %1 : f32[2,3]
  %49 = pow %0, %1 : f32[2,3]
  %50 = atan2 %0, %1 : f32[2,3]
  %51 = min %0, %1 : f32[2,3]
  %52 = max %0, %1 : f32[2,3]
  %53 = bitwise_and %2, %3 : s32[2,3]
  %54 = bitwise_or %2, %3 : s32[2,3]
  %55 = bitwise_xor %2, %3 : s32[2,3]
  %56 = left_shift %2, %3 : s32[2,3]
  %57 = right_shift %2, %3 : s32[2,3]
  %58 = equal %0, %1 : u8[2,3]
  %59 = not_equal %0, %1 : u8[2,3]
  %60 = greater %0, %1 : u8[2,3]
  %61 = less %0, %1 : u8[2,3]
  %62 = greater_equal %0, %1 : u8[2,3]
  %63 = less_equal %0, %1 : u8[2,3]
  %64 = logical_and %0, %1 : u8[2,3]
  %65 = logical_or %0, %1 : u8[2,3]
  %66 = logical_xor %0, %1 : u8[2,3]
  %67 = constant 1.5 : f32[2]
  %68 = constant -0.0 : f64[]
  %69 = constant 0x7fc00001 : f32[]
  %70 = constant 0x7e01 : f16[]
  %71 = constant 0xff80 : bf16[]
  %72 = constant 0xfff0000000000000 : f64[]
  %73 = constant 0.1 : f64[]
  %74 = constant 0.1 : f16[]
  %75 = constant 1e-45 : f32[]
  %76 = constant 5e-324 : f64[]
  %77 = constant 1e+20 : f32[]
  %78 = constant -128 : s8[]
  %79 = constant -9223372036854775808 : s64[]
  %80 = constant 18446744073709551615 : u64[]
  %81 = constant 255 : u8[]
  %82 = constant 3.141592653589793 : f64[0,4]
  %83 = literal "0000803f00000040" : f32[2]
  %84 = literal "" : s16[0]
  %85 = iota {axis = 1} : s32[2,3]
  %86 = iota {axis = -1} : f32[2,3]
  %87 = iota {axis = -1} : bf16[]
  %88 = eye : u8[2,3,3]
  %89 = convert %0 : s8[2,3]
  %90 = bitcast %0 : u32[2,3]
  %91 = select %6, %0, %1 : f32[2,3]
  %92 = clamp %0, %1, %0 : f32[2,3]
  %93 = reshape %0 {shape = [3,2]} : f32[3,2]
  %94 = broadcast %0 {shape = [2,5,3], axes = [0,2]} : f32[2,5,3]
  %95 = broadcast %4 {shape = [4], axes = []} : f32[4]
  %96 = transpose %0 {axes = [1,0]} : f32[3,2]
  %97 = reverse %0 {axes = [0,1]} : f32[2,3]
  %98 = slice %0 {start = [0,1], limit = [2,3], stride = [1,2]} : f32[2,1]
  %99 = dynamic_slice %0, %5, %5 {shape = [1,2]} : f32[1,2]
  %100 = put_slice %0, %0, %5, %5 : f32[2,3]
  %101 = pad %0, %4 {low = [-1,2], high = [0,0], interior = [0,1]} : f32[1,7]
  %102 = concatenate %0, %1 {axis = 1} : f32[2,6]
  %103 = take %0, %7 {axis = 1} : f32[2,4]
  %104 = take_along_axis %0, %2 {axis = 0} : f32[2,3]
  %105 = reduce_sum %0 {axes = [1]} : f32[2]
  %106 = reduce_product %0 {axes = [1]} : f32[2]
  %107 = reduce_max %0 {axes = [1]} : f32[2]
  %108 = reduce_min %0 {axes = [1]} : f32[2]
  %109 = reduce_all %0 {axes = [0,1]} : u8[]
  %110 = reduce_any %0 {axes = [0,1]} : u8[]
  %111 = reduce %0, %4 {axes = [0]} {
    combine(%112: f32[], %113: f32[]) {
      %114 = add %112, %113 : f32[]
      return %114
    }
  } : f32[3]
  %115 = argmax %0 {axis = 1, high = false} : s32[2]
  %116 = argmin %0 {axis = -1, high = true} : s64[]
  %117 = cumulative_sum %0 {axis = 1, reverse = true} : f32[2,3]
  %118 = cumulative_product %0 {axis = 1, reverse = true} : f32[2,3]
  %119 = cumulative_min %0 {axis = 1, reverse = true} : f32[2,3]
  %120 = cumulative_max %0 {axis = 1, reverse = true} : f32[2,3]
  %121 = dot_general %0, %1 {lhs_contract = [1], lhs_batch = [0], rhs_contract = [1], rhs_batch = [0]} : f32[2]
  %122 = dot_general %0, %1 {lhs_contract = [], lhs_batch = [], rhs_contract = [], rhs_batch = []} : f32[2,3,2,3]
  %123, %124 = while %5, %0 {
    condition(%125: s32[], %126: f32[2,3]) {
      %127 = less %125, %125 : u8[]
      return %127
    }
    body(%128: s32[], %129: f32[2,3]) {
      %130 = add %128, %128 : s32[]
      return %130, %129
    }
  } : s32[], f32[2,3]
  %131, %132 = cond %8, %0, %4 {
    true(%133: f32[2,3], %134: f32[]) {
      return %133, %134
    }
    false(%135: f32[2,3], %136: f32[]) {
      %137 = exp %135 : f32[2,3]
      return %137, %136
    }
  } : f32[2,3], f32[]
  %138 = call %0 {
    body(%139: f32[2,3]) {
      %140 = tanh %139 : f32[2,3]
      return %140
    }
  } : f32[2,3]
  %141 = fusion %0, %1 {kind = 7} {
    body(%142: f32[2,3], %143: f32[2,3]) {
      %144 = add %142, %143 : f32[2,3]
      %145 = exp %144 : f32[2,3]
      return %145
    }
  } : f32[2,3]
  return %124, %123
}
