// stablehlo
graph @scalars() -> () {
  %0 = constant 1 : f32[]
  %1 = constant 0.10000000000000000555 : f64[]
  %2 = constant 16777217 : f32[]
  %3 = constant 65504 : f16[]
  %4 = constant 3.14159 : bf16[]
  %5 = constant 0xffc00001 : f32[]
  %6 = constant 0x3f800000 : f32[]
  %7 = constant -0.0 : f16[]
  %8 = constant 0x7ff0000000000000 : f64[2]
  %9 = constant 0xff : s8[]
  %10 = constant 1e-310 : f64[]
  return
}
