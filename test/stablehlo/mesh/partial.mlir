module @jit_partial attributes {jax.uses_shape_polymorphism = false, mhlo.num_partitions = 8 : i32, mhlo.num_replicas = 1 : i32} {
  sdy.mesh @mesh = <["x"=4, "y"=2]> {stablehlo.mesh = {axes = [{name = "x", size = 4 : i64}, {name = "y", size = 2 : i64}]}} loc(#loc)
  func.func public @main(%arg0: tensor<8x8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"x"}, {"y"}]>} loc("a"), %arg1: tensor<8x8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{}, {"y"}]>} loc("b")) -> (tensor<2x8xf32> {jax.result_info = "result[0]"}, tensor<32x8xf32> {jax.result_info = "result[1]"}) {
    %0:2 = sdy.manual_computation(%arg0, %arg1) in_shardings=[<@mesh, [{"x", ?}, {?}]>, <@mesh, [{?}, {?}]>] out_shardings=[<@mesh, [{?}, {?}]>, <@mesh, [{?}, {?}]>] manual_axes={"x"} (%arg2: tensor<2x8xf32> loc("shard_map:"(#loc7)), %arg3: tensor<8x8xf32> loc("shard_map:"(#loc7))) {
      %1 = "stablehlo.all_reduce"(%arg2) <{channel_handle = #stablehlo.channel_handle<handle = 1, type = 0>, replica_groups = dense<[[0, 2, 4, 6], [1, 3, 5, 7]]> : tensor<2x4xi64>, use_global_device_ids}> ({
      ^bb0(%arg4: tensor<f32> loc("psum:"(#loc9)), %arg5: tensor<f32> loc("psum:"(#loc9))):
        %5 = stablehlo.add %arg4, %arg5 : tensor<f32> loc(#loc27)
        %6 = sdy.sharding_constraint %5 <@mesh, []> : tensor<f32> loc(#loc27)
        stablehlo.return %6 : tensor<f32> loc(#loc22)
      }) : (tensor<2x8xf32>) -> tensor<2x8xf32> loc(#loc22)
      %2 = stablehlo.dot_general %1, %arg3, contracting_dims = [1] x [0] : (tensor<2x8xf32>, tensor<8x8xf32>) -> tensor<2x8xf32> loc(#loc24)
      %3 = sdy.sharding_constraint %2 <@mesh, [{?}, {?}]> : tensor<2x8xf32> loc(#loc24)
      %4 = "stablehlo.all_gather"(%arg3) <{all_gather_dim = 0 : i64, channel_handle = #stablehlo.channel_handle<handle = 1, type = 0>, replica_groups = dense<[[0, 2, 4, 6], [1, 3, 5, 7]]> : tensor<2x4xi64>, use_global_device_ids}> : (tensor<8x8xf32>) -> tensor<32x8xf32> loc(#loc25)
      sdy.return %3, %4 : tensor<2x8xf32>, tensor<32x8xf32> loc(#loc16)
    } : (tensor<8x8xf32>, tensor<8x8xf32>) -> (tensor<2x8xf32>, tensor<32x8xf32>) loc(#loc30)
    return %0#0, %0#1 : tensor<2x8xf32>, tensor<32x8xf32> loc(#loc29)
  } loc(#loc)
} loc(#loc)
