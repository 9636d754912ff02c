module attributes {mhlo.num_partitions = 8 : i32} {
  sdy.mesh @mesh = <["x"=8]>
  func.func public @main(%arg0: tensor<8x4xf32>) -> tensor<4x8xf32> {
    %0 = sdy.manual_computation(%arg0) in_shardings=[<@mesh, [{"x":(1)2}, {"x":(2)2}]>] out_shardings=[<@mesh, [{"x":(2)2}, {"x":(1)2}]>]
        manual_axes={"x"} (%a: tensor<4x2xf32>) {
      %t = stablehlo.transpose %a, dims = [1, 0] : (tensor<4x2xf32>) -> tensor<2x4xf32>
      sdy.return %t : tensor<2x4xf32>
    } : (tensor<8x4xf32>) -> tensor<4x8xf32>
    return %0 : tensor<4x8xf32>
  }
}
