module @jit_branch attributes {jax.uses_shape_polymorphism = false, mhlo.num_partitions = 8 : i32, mhlo.num_replicas = 1 : i32} {
  sdy.mesh @mesh = <["x"=4, "y"=2]> {stablehlo.mesh = {axes = [{name = "x", size = 4 : i64}, {name = "y", size = 2 : i64}]}} loc(#loc)
  func.func public @main(%arg0: tensor<8x8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"x"}, {"y"}]>} loc("a")) -> (tensor<8x8xf32> {jax.result_info = "result"}) {
    %0 = sdy.manual_computation(%arg0) in_shardings=[<@mesh, [{"x"}, {"y"}]>] out_shardings=[<@mesh, [{"x"}, {"y"}]>] manual_axes={"x", "y"} (%arg1: tensor<2x4xf32> loc("shard_map:"(#loc5))) {
      %c = stablehlo.constant dense<2> : tensor<ui32> loc(#loc)
      %c_0 = stablehlo.constant dense<1> : tensor<ui32> loc(#loc)
      %cst = stablehlo.constant dense<0.000000e+00> : tensor<f32> loc(#loc)
      %1 = stablehlo.reduce(%arg1 init: %cst) applies stablehlo.add across dimensions = [0, 1] : (tensor<2x4xf32>, tensor<f32>) -> tensor<f32> loc(#loc35)
      %2 = "stablehlo.all_reduce"(%1) <{channel_handle = #stablehlo.channel_handle<handle = 1, type = 0>, replica_groups = dense<[[0, 1, 2, 3, 4, 5, 6, 7]]> : tensor<1x8xi64>, use_global_device_ids}> ({
      ^bb0(%arg2: tensor<f32> loc("psum:"(#loc8)), %arg3: tensor<f32> loc("psum:"(#loc8))):
        %6 = stablehlo.add %arg2, %arg3 : tensor<f32> loc(#loc50)
        stablehlo.return %6 : tensor<f32> loc(#loc36)
      }) : (tensor<f32>) -> tensor<f32> loc(#loc36)
      %3 = stablehlo.compare GT, %2, %cst, FLOAT : (tensor<f32>, tensor<f32>) -> tensor<i1> loc(#loc38)
      %4 = stablehlo.convert %3 : (tensor<i1>) -> tensor<i32> loc(#loc39)
      %5 = "stablehlo.case"(%4) ({
        %6 = "stablehlo.all_reduce"(%arg1) <{channel_handle = #stablehlo.channel_handle<handle = 1, type = 0>, replica_groups = dense<[[0, 1], [2, 3], [4, 5], [6, 7]]> : tensor<4x2xi64>, use_global_device_ids}> ({
        ^bb0(%arg2: tensor<f32> loc("psum:"(#loc8)), %arg3: tensor<f32> loc("psum:"(#loc8))):
          %8 = stablehlo.add %arg2, %arg3 : tensor<f32> loc(#loc60)
          stablehlo.return %8 : tensor<f32> loc(#loc51)
        }) : (tensor<2x4xf32>) -> tensor<2x4xf32> loc(#loc51)
        %7 = stablehlo.subtract %arg1, %6 : tensor<2x4xf32> loc(#loc53)
        stablehlo.return %7 : tensor<2x4xf32> loc(#loc40)
      }, {
        %6 = "stablehlo.all_reduce"(%arg1) <{channel_handle = #stablehlo.channel_handle<handle = 1, type = 0>, replica_groups = dense<[[0, 2, 4, 6], [1, 3, 5, 7]]> : tensor<2x4xi64>, use_global_device_ids}> ({
        ^bb0(%arg2: tensor<f32> loc("pmax:"(#loc14)), %arg3: tensor<f32> loc("pmax:"(#loc14))):
          %14 = stablehlo.maximum %arg2, %arg3 : tensor<f32> loc(#loc61)
          stablehlo.return %14 : tensor<f32> loc(#loc54)
        }) : (tensor<2x4xf32>) -> tensor<2x4xf32> loc(#loc54)
        %7 = stablehlo.partition_id : tensor<ui32> loc(#loc56)
        %8 = stablehlo.divide %7, %c_0 : tensor<ui32> loc(#loc56)
        %9 = stablehlo.remainder %8, %c : tensor<ui32> loc(#loc56)
        %10 = stablehlo.convert %9 : (tensor<ui32>) -> tensor<i32> loc(#loc56)
        %11 = stablehlo.convert %10 : (tensor<i32>) -> tensor<f32> loc(#loc57)
        %12 = stablehlo.broadcast_in_dim %11, dims = [] : (tensor<f32>) -> tensor<2x4xf32> loc(#loc58)
        %13 = stablehlo.multiply %6, %12 : tensor<2x4xf32> loc(#loc58)
        stablehlo.return %13 : tensor<2x4xf32> loc(#loc40)
      }) : (tensor<i32>) -> tensor<2x4xf32> loc(#loc40)
      sdy.return %5 : tensor<2x4xf32> loc(#loc21)
    } : (tensor<8x8xf32>) -> tensor<8x8xf32> loc(#loc59)
    return %0 : tensor<8x8xf32> loc(#loc62)
  } loc(#loc)
} loc(#loc)
