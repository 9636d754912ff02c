// checks bits
// counts: steps 10, bytes of temporaries 5760
// Products of a few vectors read rows that are apart, and parts of rows, where they lie: also both operands, of batches, of
// complex and of narrow numbers. Equal products of slices that begin at other places share a plan; other distances need
// another one. Steps between neighbours are copied where the kernel of the copy needs neighbours.
graph @main(%0: f32[40,71], %1: f32[71], %2: f64[6,30,20], %3: f64[3,20,7], %4: c64[300], %5: c64[600,16], %6: bf16[70,45], %7: s8[50,190], %8: s8[90,70]) -> (f32[20], f32[20], f32[13], f64[3,10,7], c64[16], f32[34], s8[5,65], f32[8,8], f32[40]) {
  %9 = slice %0 {start = [0,0], limit = [40,71], stride = [2,1]} : f32[20,71]
  %10 = dot_general %9, %1 {lhs_contract = [1], lhs_batch = [], rhs_contract = [0], rhs_batch = []} : f32[20]
  %11 = slice %0 {start = [1,0], limit = [40,71], stride = [2,1]} : f32[20,71]
  %12 = dot_general %11, %1 {lhs_contract = [1], lhs_batch = [], rhs_contract = [0], rhs_batch = []} : f32[20]
  %13 = slice %0 {start = [1,0], limit = [40,71], stride = [3,1]} : f32[13,71]
  %14 = dot_general %13, %1 {lhs_contract = [1], lhs_batch = [], rhs_contract = [0], rhs_batch = []} : f32[13]
  %15 = slice %2 {start = [1,5,0], limit = [6,25,20], stride = [2,2,1]} : f64[3,10,20]
  %16 = dot_general %15, %3 {lhs_contract = [2], lhs_batch = [0], rhs_contract = [1], rhs_batch = [0]} : f64[3,10,7]
  %17 = slice %5 {start = [0,0], limit = [600,16], stride = [2,1]} : c64[300,16]
  %18 = dot_general %4, %17 {lhs_contract = [0], lhs_batch = [], rhs_contract = [0], rhs_batch = []} : c64[16]
  %19 = slice %6 {start = [3,3], limit = [70,43], stride = [2,1]} : bf16[34,40]
  %20 = convert %19 : f32[34,40]
  %21 = slice %1 {start = [9], limit = [49], stride = [1]} : f32[40]
  %22 = dot_general %20, %21 {lhs_contract = [1], lhs_batch = [], rhs_contract = [0], rhs_batch = []} : f32[34]
  %23 = slice %7 {start = [1,7], limit = [50,97], stride = [10,1]} : s8[5,90]
  %24 = slice %8 {start = [0,1], limit = [90,66], stride = [1,1]} : s8[90,65]
  %25 = dot_general %23, %24 {lhs_contract = [1], lhs_batch = [], rhs_contract = [0], rhs_batch = []} : s8[5,65]
  %26 = slice %0 {start = [1,3], limit = [17,71], stride = [2,1]} : f32[8,68]
  %27 = dot_general %26, %26 {lhs_contract = [1], lhs_batch = [], rhs_contract = [1], rhs_batch = []} : f32[8,8]
  %28 = slice %0 {start = [0,0], limit = [40,71], stride = [1,2]} : f32[40,36]
  %29 = slice %1 {start = [0], limit = [36], stride = [1]} : f32[36]
  %30 = dot_general %28, %29 {lhs_contract = [1], lhs_batch = [], rhs_contract = [0], rhs_batch = []} : f32[40]
  return %10, %12, %14, %16, %18, %22, %25, %27, %30
}
