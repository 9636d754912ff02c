module @jit_collectives attributes {jax.uses_shape_polymorphism = false, mhlo.num_partitions = 8 : i32, mhlo.num_replicas = 1 : i32} {
  sdy.mesh @mesh = <["x"=4, "y"=2]> {stablehlo.mesh = {axes = [{name = "x", size = 4 : i64}, {name = "y", size = 2 : i64}]}} loc(#loc)
  func.func public @main(%arg0: tensor<16x8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"x"}, {"y"}]>} loc("a"), %arg1: tensor<16x4xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"x"}, {}]>} loc("b")) -> (tensor<16x8xf32> {jax.result_info = "result[0]"}, tensor<32x4xf32> {jax.result_info = "result[1]"}, tensor<16x8xf32> {jax.result_info = "result[2]"}, tensor<8x16xf32> {jax.result_info = "result[3]"}, tensor<4x4xf32> {jax.result_info = "result[4]"}, tensor<4x16x4xi1> {jax.result_info = "result[5]"}) {
    %0:6 = sdy.manual_computation(%arg0, %arg1) in_shardings=[<@mesh, [{"x"}, {"y"}]>, <@mesh, [{"x"}, {}]>] out_shardings=[<@mesh, [{"x"}, {"y"}]>, <@mesh, [{"y", "x"}, {}]>, <@mesh, [{"x"}, {"y"}]>, <@mesh, [{"x"}, {"y"}]>, <@mesh, [{}, {}]>, <@mesh, [{"y"}, {"x"}, {}]>] manual_axes={"x", "y"} (%arg2: tensor<4x4xf32> loc("shard_map:"(#loc6)), %arg3: tensor<4x4xf32> loc("shard_map:"(#loc6))) {
      %cst = stablehlo.constant dense<0.000000e+00> : tensor<f32> loc(#loc27)
      %c = stablehlo.constant dense<4> : tensor<i32> loc(#loc27)
      %c_0 = stablehlo.constant dense<1> : tensor<ui32> loc(#loc46)
      %c_1 = stablehlo.constant dense<0> : tensor<i32> loc(#loc27)
      %c_2 = stablehlo.constant dense<1> : tensor<i32> loc(#loc27)
      %c_3 = stablehlo.constant dense<2> : tensor<ui32> loc(#loc)
      %c_4 = stablehlo.constant dense<4> : tensor<ui32> loc(#loc46)
      %1 = stablehlo.partition_id : tensor<ui32> loc(#loc46)
      %2 = stablehlo.divide %1, %c_3 : tensor<ui32> loc(#loc46)
      %3 = stablehlo.remainder %2, %c_4 : tensor<ui32> loc(#loc46)
      %4 = stablehlo.convert %3 : (tensor<ui32>) -> tensor<i32> loc(#loc46)
      %5 = stablehlo.multiply %4, %c_2 : tensor<i32> loc(#loc47)
      %6 = stablehlo.add %c_1, %5 : tensor<i32> loc(#loc48)
      %7 = stablehlo.partition_id : tensor<ui32> loc(#loc46)
      %8 = stablehlo.divide %7, %c_0 : tensor<ui32> loc(#loc46)
      %9 = stablehlo.remainder %8, %c_3 : tensor<ui32> loc(#loc46)
      %10 = stablehlo.convert %9 : (tensor<ui32>) -> tensor<i32> loc(#loc46)
      %11 = stablehlo.multiply %10, %c : tensor<i32> loc(#loc47)
      %12 = stablehlo.add %6, %11 : tensor<i32> loc(#loc48)
      %13 = stablehlo.convert %12 : (tensor<i32>) -> tensor<f32> loc(#loc49)
      %14 = "stablehlo.all_gather"(%arg3) <{all_gather_dim = 0 : i64, channel_handle = #stablehlo.channel_handle<handle = 1, type = 0>, replica_groups = dense<[[0, 2, 4, 6, 1, 3, 5, 7]]> : tensor<1x8xi64>, use_global_device_ids}> : (tensor<4x4xf32>) -> tensor<32x4xf32> loc(#loc50)
      %15 = "stablehlo.all_reduce"(%arg2) <{channel_handle = #stablehlo.channel_handle<handle = 1, type = 0>, replica_groups = dense<[[0, 2, 4, 6], [1, 3, 5, 7]]> : tensor<2x4xi64>, use_global_device_ids}> ({
      ^bb0(%arg4: tensor<f32> loc("psum:"(#loc11)), %arg5: tensor<f32> loc("psum:"(#loc11))):
        %28 = stablehlo.add %arg4, %arg5 : tensor<f32> loc(#loc66)
        stablehlo.return %28 : tensor<f32> loc(#loc51)
      }) : (tensor<4x4xf32>) -> tensor<4x4xf32> loc(#loc51)
      %16 = stablehlo.broadcast_in_dim %13, dims = [] : (tensor<f32>) -> tensor<4x4xf32> loc(#loc53)
      %17 = stablehlo.multiply %15, %16 : tensor<4x4xf32> loc(#loc53)
      %18 = "stablehlo.reduce_scatter"(%14) <{channel_handle = #stablehlo.channel_handle<handle = 1, type = 0>, replica_groups = dense<[[0, 2, 4, 6, 1, 3, 5, 7]]> : tensor<1x8xi64>, scatter_dimension = 0 : i64, use_global_device_ids}> ({
      ^bb0(%arg4: tensor<f32> loc("reduce_scatter:"(#loc14)), %arg5: tensor<f32> loc("reduce_scatter:"(#loc14))):
        %28 = stablehlo.add %arg4, %arg5 : tensor<f32> loc(#loc67)
        stablehlo.return %28 : tensor<f32> loc(#loc54)
      }) : (tensor<32x4xf32>) -> tensor<4x4xf32> loc(#loc54)
      %19 = "stablehlo.all_reduce"(%arg2) <{channel_handle = #stablehlo.channel_handle<handle = 1, type = 0>, replica_groups = dense<[[0, 1], [2, 3], [4, 5], [6, 7]]> : tensor<4x2xi64>, use_global_device_ids}> ({
      ^bb0(%arg4: tensor<f32> loc("pmin:"(#loc16)), %arg5: tensor<f32> loc("pmin:"(#loc16))):
        %28 = stablehlo.minimum %arg4, %arg5 : tensor<f32> loc(#loc68)
        stablehlo.return %28 : tensor<f32> loc(#loc56)
      }) : (tensor<4x4xf32>) -> tensor<4x4xf32> loc(#loc56)
      %20 = stablehlo.add %18, %19 : tensor<4x4xf32> loc(#loc58)
      %21 = "stablehlo.collective_permute"(%arg2) <{channel_handle = #stablehlo.channel_handle<handle = 1, type = 0>, source_target_pairs = dense<[[0, 4], [6, 2], [1, 5], [7, 3]]> : tensor<4x2xi64>}> : (tensor<4x4xf32>) -> tensor<4x4xf32> loc(#loc59)
      %22 = "stablehlo.all_to_all"(%arg2) <{channel_handle = #stablehlo.channel_handle<handle = 1, type = 0>, concat_dimension = 1 : i64, replica_groups = dense<[[0, 1], [2, 3], [4, 5], [6, 7]]> : tensor<4x2xi64>, split_count = 2 : i64, split_dimension = 0 : i64}> : (tensor<4x4xf32>) -> tensor<2x8xf32> loc(#loc60)
      %23 = "stablehlo.all_reduce"(%arg2) <{channel_handle = #stablehlo.channel_handle<handle = 1, type = 0>, replica_groups = dense<[[0, 1, 2, 3, 4, 5, 6, 7]]> : tensor<1x8xi64>, use_global_device_ids}> ({
      ^bb0(%arg4: tensor<f32> loc("pmax:"(#loc21)), %arg5: tensor<f32> loc("pmax:"(#loc21))):
        %28 = stablehlo.maximum %arg4, %arg5 : tensor<f32> loc(#loc69)
        stablehlo.return %28 : tensor<f32> loc(#loc61)
      }) : (tensor<4x4xf32>) -> tensor<4x4xf32> loc(#loc61)
      %24 = stablehlo.broadcast_in_dim %cst, dims = [] : (tensor<f32>) -> tensor<4x4xf32> loc(#loc63)
      %25 = stablehlo.compare GT, %arg2, %24, FLOAT : (tensor<4x4xf32>, tensor<4x4xf32>) -> tensor<4x4xi1> loc(#loc63)
      %26 = stablehlo.broadcast_in_dim %25, dims = [1, 2] : (tensor<4x4xi1>) -> tensor<1x4x4xi1> loc(#loc64)
      %27 = "stablehlo.all_gather"(%26) <{all_gather_dim = 0 : i64, channel_handle = #stablehlo.channel_handle<handle = 1, type = 0>, replica_groups = dense<[[0, 1], [2, 3], [4, 5], [6, 7]]> : tensor<4x2xi64>, use_global_device_ids}> : (tensor<1x4x4xi1>) -> tensor<2x4x4xi1> loc(#loc64)
      sdy.return %17, %20, %21, %22, %23, %27 : tensor<4x4xf32>, tensor<4x4xf32>, tensor<4x4xf32>, tensor<2x8xf32>, tensor<4x4xf32>, tensor<2x4x4xi1> loc(#loc27)
    } : (tensor<16x8xf32>, tensor<16x4xf32>) -> (tensor<16x8xf32>, tensor<32x4xf32>, tensor<16x8xf32>, tensor<8x16xf32>, tensor<4x4xf32>, tensor<4x16x4xi1>) loc(#loc70)
    return %0#0, %0#1, %0#2, %0#3, %0#4, %0#5 : tensor<16x8xf32>, tensor<32x4xf32>, tensor<16x8xf32>, tensor<8x16xf32>, tensor<4x4xf32>, tensor<4x16x4xi1> loc(#loc71)
  } loc(#loc)
} loc(#loc)
