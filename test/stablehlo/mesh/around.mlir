module @jit_around attributes {jax.uses_shape_polymorphism = false, mhlo.num_partitions = 8 : i32, mhlo.num_replicas = 1 : i32} {
  sdy.mesh @mesh = <["x"=4, "y"=2]> {stablehlo.mesh = {axes = [{name = "x", size = 4 : i64}, {name = "y", size = 2 : i64}]}} loc(#loc)
  func.func public @main(%arg0: tensor<8x8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"x"}, {}]>} loc("a"), %arg1: tensor<8x8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{}, {}]>} loc("b")) -> (tensor<8x8xf32> {jax.result_info = "result[0]"}, tensor<f32> {jax.result_info = "result[1]"}) {
    %cst = stablehlo.constant dense<0.000000e+00> : tensor<f32> loc(#loc42)
    %cst_0 = stablehlo.constant dense<1.000000e-01> : tensor<f32> loc(#loc37)
    %0 = sdy.manual_computation(%arg0, %arg1) in_shardings=[<@mesh, [{"x"}, {}]>, <@mesh, [{}, {}]>] out_shardings=[<@mesh, [{"x"}, {}]>] manual_axes={"x", "y"} (%arg2: tensor<2x8xf32> loc("shard_map:"(#loc8)), %arg3: tensor<8x8xf32> loc("shard_map:"(#loc8))) {
      %6 = "stablehlo.all_gather"(%arg2) <{all_gather_dim = 0 : i64, channel_handle = #stablehlo.channel_handle<handle = 1, type = 0>, replica_groups = dense<[[0, 2, 4, 6], [1, 3, 5, 7]]> : tensor<2x4xi64>, use_global_device_ids}> : (tensor<2x8xf32>) -> tensor<8x8xf32> loc(#loc30)
      %7 = stablehlo.dot_general %6, %arg3, contracting_dims = [1] x [0] : (tensor<8x8xf32>, tensor<8x8xf32>) -> tensor<8x8xf32> loc(#loc31)
      %8 = "stablehlo.reduce_scatter"(%7) <{channel_handle = #stablehlo.channel_handle<handle = 1, type = 0>, replica_groups = dense<[[0, 2, 4, 6], [1, 3, 5, 7]]> : tensor<2x4xi64>, scatter_dimension = 0 : i64, use_global_device_ids}> ({
      ^bb0(%arg4: tensor<f32> loc("reduce_scatter:"(#loc12)), %arg5: tensor<f32> loc("reduce_scatter:"(#loc12))):
        %9 = stablehlo.add %arg4, %arg5 : tensor<f32> loc(#loc35)
        stablehlo.return %9 : tensor<f32> loc(#loc32)
      }) : (tensor<8x8xf32>) -> tensor<2x8xf32> loc(#loc32)
      sdy.return %8 : tensor<2x8xf32> loc(#loc21)
    } : (tensor<8x8xf32>, tensor<8x8xf32>) -> tensor<8x8xf32> loc(#loc43)
    %1 = stablehlo.broadcast_in_dim %cst_0, dims = [] : (tensor<f32>) -> tensor<8x8xf32> loc(#loc44)
    %2 = stablehlo.multiply %1, %0 : tensor<8x8xf32> loc(#loc44)
    %3 = stablehlo.subtract %arg0, %2 : tensor<8x8xf32> loc(#loc45)
    %4 = sdy.manual_computation(%arg0, %arg1) in_shardings=[<@mesh, [{"x"}, {}]>, <@mesh, [{}, {}]>] out_shardings=[<@mesh, [{"x"}, {}]>] manual_axes={"x", "y"} (%arg2: tensor<2x8xf32> loc("shard_map:"(#loc8)), %arg3: tensor<8x8xf32> loc("shard_map:"(#loc8))) {
      %6 = "stablehlo.all_gather"(%arg2) <{all_gather_dim = 0 : i64, channel_handle = #stablehlo.channel_handle<handle = 1, type = 0>, replica_groups = dense<[[0, 2, 4, 6], [1, 3, 5, 7]]> : tensor<2x4xi64>, use_global_device_ids}> : (tensor<2x8xf32>) -> tensor<8x8xf32> loc(#loc30)
      %7 = stablehlo.dot_general %6, %arg3, contracting_dims = [1] x [0] : (tensor<8x8xf32>, tensor<8x8xf32>) -> tensor<8x8xf32> loc(#loc31)
      %8 = "stablehlo.reduce_scatter"(%7) <{channel_handle = #stablehlo.channel_handle<handle = 1, type = 0>, replica_groups = dense<[[0, 2, 4, 6], [1, 3, 5, 7]]> : tensor<2x4xi64>, scatter_dimension = 0 : i64, use_global_device_ids}> ({
      ^bb0(%arg4: tensor<f32> loc("reduce_scatter:"(#loc12)), %arg5: tensor<f32> loc("reduce_scatter:"(#loc12))):
        %9 = stablehlo.add %arg4, %arg5 : tensor<f32> loc(#loc35)
        stablehlo.return %9 : tensor<f32> loc(#loc32)
      }) : (tensor<8x8xf32>) -> tensor<2x8xf32> loc(#loc32)
      sdy.return %8 : tensor<2x8xf32> loc(#loc21)
    } : (tensor<8x8xf32>, tensor<8x8xf32>) -> tensor<8x8xf32> loc(#loc46)
    %5 = stablehlo.reduce(%4 init: %cst) applies stablehlo.add across dimensions = [0, 1] : (tensor<8x8xf32>, tensor<f32>) -> tensor<f32> loc(#loc42)
    return %3, %5 : tensor<8x8xf32>, tensor<f32> loc(#loc37)
  } loc(#loc)
} loc(#loc)
