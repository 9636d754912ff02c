// checks bits passes: hoist
// Matrices that a loop multiplies with a vector, and whose rows are contiguous along the terms, are transposed before
// the loop: on the left, on the right, in a batch, and in an inner loop. What is a transpose in the body is read as it
// was before. A matrix that is contiguous along the results stays, and so do one that the loop changes, one with
// few results, and one that is multiplied with several vectors.
graph @main(%0: f32[16,24], %1: f32[24], %2: s32[], %3: f64[2,9,5], %4: f32[24,16]) -> (f32[24], f32[16], f64[2,5], f32[24,16]) {
  %5 = constant 0.0 : f32[16]
  %6 = constant 0.25 : f64[2,5]
  %7, %8, %9, %10, %11, %12, %13 = while %2, %0, %1, %3, %4, %5, %6 {
    condition(%14: s32[], %15: f32[16,24], %16: f32[24], %17: f64[2,9,5], %18: f32[24,16], %19: f32[16], %20: f64[2,5]) {
      %21 = constant 3 : s32[]
      %22 = less %14, %21 : u8[]
      return %22
    }
    body(%23: s32[], %24: f32[16,24], %25: f32[24], %26: f64[2,9,5], %27: f32[24,16], %28: f32[16], %29: f64[2,5]) {
      %30 = constant 1 : s32[]
      %31 = add %23, %30 : s32[]
      %32 = dot_general %24, %25 {lhs_contract = [1], lhs_batch = [], rhs_contract = [0], rhs_batch = []} : f32[16]
      %33 = dot_general %32, %24 {lhs_contract = [0], lhs_batch = [], rhs_contract = [0], rhs_batch = []} : f32[24]
      %34 = transpose %24 {axes = [1,0]} : f32[24,16]
      %35 = dot_general %28, %34 {lhs_contract = [0], lhs_batch = [], rhs_contract = [1], rhs_batch = []} : f32[24]
      %36 = dot_general %27, %28 {lhs_contract = [1], lhs_batch = [], rhs_contract = [0], rhs_batch = []} : f32[24]
      %37 = add %33, %36 : f32[24]
      %38 = add %37, %35 : f32[24]
      %39 = dot_general %29, %26 {lhs_contract = [1], lhs_batch = [0], rhs_contract = [2], rhs_batch = [0]} : f64[2,9]
      %40 = dot_general %39, %26 {lhs_contract = [1], lhs_batch = [0], rhs_contract = [1], rhs_batch = [0]} : f64[2,5]
      %41 = slice %24 {start = [0,0], limit = [4,24], stride = [1,1]} : f32[4,24]
      %42 = dot_general %41, %25 {lhs_contract = [1], lhs_batch = [], rhs_contract = [0], rhs_batch = []} : f32[4]
      %43 = concatenate %42, %42, %42, %42 {axis = 0} : f32[16]
      %44 = dot_general %24, %27 {lhs_contract = [1], lhs_batch = [], rhs_contract = [0], rhs_batch = []} : f32[16,16]
      %45 = dot_general %44, %28 {lhs_contract = [0], lhs_batch = [], rhs_contract = [0], rhs_batch = []} : f32[16]
      %46, %47, %48 = while %23, %43, %24 {
        condition(%49: s32[], %50: f32[16], %51: f32[16,24]) {
          %52 = constant 2 : s32[]
          %53 = less %49, %52 : u8[]
          return %53
        }
        body(%54: s32[], %55: f32[16], %56: f32[16,24]) {
          %57 = constant 1 : s32[]
          %58 = add %54, %57 : s32[]
          %59 = dot_general %55, %56 {lhs_contract = [0], lhs_batch = [], rhs_contract = [0], rhs_batch = []} : f32[24]
          %60 = dot_general %56, %59 {lhs_contract = [1], lhs_batch = [], rhs_contract = [0], rhs_batch = []} : f32[16]
          return %58, %60, %56
        }
      } : s32[], f32[16], f32[16,24]
      %61 = add %45, %47 : f32[16]
      %62 = constant 0.01 : f32[16]
      %63 = multiply %61, %62 : f32[16]
      %64 = constant 0.01 : f32[24]
      %65 = multiply %38, %64 : f32[24]
      %66 = constant 0.5 : f32[24,16]
      %67 = multiply %27, %66 : f32[24,16]
      return %31, %24, %65, %26, %67, %63, %40
    }
  } : s32[], f32[16,24], f32[24], f64[2,9,5], f32[24,16], f32[16], f64[2,5]
  return %9, %12, %13, %11
}
