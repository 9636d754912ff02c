module attributes {mhlo.num_partitions = 8 : i32} {
  sdy.mesh @mesh = <["x"=8]>
  func.func public @main(%arg0: tensor<8x4xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"x":(1)2}, {"x":(2)4}]>})
      -> (tensor<8x4xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"x":(4)2, "x":(1)2}, {}]>}) {
    %0 = stablehlo.add %arg0, %arg0 : tensor<8x4xf32>
    %1 = sdy.sharding_constraint %0 <@mesh, [{}, {"x":(2)2}]> : tensor<8x4xf32>
    return %1 : tensor<8x4xf32>
  }
}
