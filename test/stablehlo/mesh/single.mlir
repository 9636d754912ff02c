module @jit__lambda attributes {jax.uses_shape_polymorphism = false, mhlo.num_partitions = 1 : i32, mhlo.num_replicas = 1 : i32} {
  sdy.mesh @mesh = <["x"=1]> {stablehlo.mesh = {axes = [{name = "x", size = 1 : i64}]}} loc(#loc)
  func.func public @main(%arg0: tensor<4x4xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"x"}, {}]>} loc("a")) -> (tensor<4x4xf32> {jax.result_info = "result"}) {
    %c = stablehlo.constant dense<1> : tensor<ui32> loc(#loc)
    %0 = "stablehlo.all_reduce"(%arg0) <{channel_handle = #stablehlo.channel_handle<handle = 1, type = 0>, replica_groups = dense<0> : tensor<1x1xi64>, use_global_device_ids}> ({
    ^bb0(%arg1: tensor<f32> loc("psum:"(#loc6)), %arg2: tensor<f32> loc("psum:"(#loc6))):
      %8 = stablehlo.add %arg1, %arg2 : tensor<f32> loc(#loc25)
      stablehlo.return %8 : tensor<f32> loc(#loc24)
    }) : (tensor<4x4xf32>) -> tensor<4x4xf32> loc(#loc24)
    %1 = stablehlo.partition_id : tensor<ui32> loc(#loc26)
    %2 = stablehlo.divide %1, %c : tensor<ui32> loc(#loc26)
    %3 = stablehlo.remainder %2, %c : tensor<ui32> loc(#loc26)
    %4 = stablehlo.convert %3 : (tensor<ui32>) -> tensor<i32> loc(#loc26)
    %5 = stablehlo.convert %4 : (tensor<i32>) -> tensor<f32> loc(#loc27)
    %6 = stablehlo.broadcast_in_dim %5, dims = [] : (tensor<f32>) -> tensor<4x4xf32> loc(#loc28)
    %7 = stablehlo.add %0, %6 : tensor<4x4xf32> loc(#loc28)
    return %7 : tensor<4x4xf32> loc(#loc23)
  } loc(#loc)
} loc(#loc)
