module @jit_kinds attributes {jax.uses_shape_polymorphism = false, mhlo.num_partitions = 8 : i32, mhlo.num_replicas = 1 : i32} {
  sdy.mesh @mesh = <["x"=4, "y"=2]> {stablehlo.mesh = {axes = [{name = "x", size = 4 : i64}, {name = "y", size = 2 : i64}]}} loc(#loc)
  func.func public @main(%arg0: tensor<8x8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"x"}, {"y"}]>} loc("a")) -> (tensor<2x8xi8> {jax.result_info = "result[0]"}, tensor<8x4xf32> {jax.result_info = "result[1]"}, tensor<2x4xcomplex<f32>> {jax.result_info = "result[2]"}) {
    %0:3 = sdy.manual_computation(%arg0) in_shardings=[<@mesh, [{"x"}, {"y"}]>] out_shardings=[<@mesh, [{}, {"y"}]>, <@mesh, [{"x"}, {}]>, <@mesh, [{}, {}]>] manual_axes={"x", "y"} (%arg1: tensor<2x4xf32> loc("shard_map:"(#loc5))) {
      %cst = stablehlo.constant dense<(0.000000e+00,1.000000e+00)> : tensor<complex<f32>> loc(#loc18)
      %cst_0 = stablehlo.constant dense<2.000000e+00> : tensor<bf16> loc(#loc18)
      %1 = stablehlo.convert %arg1 : (tensor<2x4xf32>) -> tensor<2x4xbf16> loc(#loc29)
      %2 = "stablehlo.all_reduce"(%1) <{channel_handle = #stablehlo.channel_handle<handle = 1, type = 0>, replica_groups = dense<[[0, 1], [2, 3], [4, 5], [6, 7]]> : tensor<4x2xi64>, use_global_device_ids}> ({
      ^bb0(%arg2: tensor<bf16> loc("psum:"(#loc8)), %arg3: tensor<bf16> loc("psum:"(#loc8))):
        %14 = stablehlo.add %arg2, %arg3 : tensor<bf16> loc(#loc44)
        stablehlo.return %14 : tensor<bf16> loc(#loc30)
      }) : (tensor<2x4xbf16>) -> tensor<2x4xbf16> loc(#loc30)
      %3 = stablehlo.broadcast_in_dim %cst_0, dims = [] : (tensor<bf16>) -> tensor<2x4xbf16> loc(#loc32)
      %4 = stablehlo.divide %2, %3 : tensor<2x4xbf16> loc(#loc32)
      %5 = stablehlo.convert %4 : (tensor<2x4xbf16>) -> tensor<2x4xf32> loc(#loc33)
      %6 = stablehlo.convert %arg1 : (tensor<2x4xf32>) -> tensor<2x4xi8> loc(#loc34)
      %7 = "stablehlo.all_reduce"(%6) <{channel_handle = #stablehlo.channel_handle<handle = 1, type = 0>, replica_groups = dense<[[0, 2, 4, 6], [1, 3, 5, 7]]> : tensor<2x4xi64>, use_global_device_ids}> ({
      ^bb0(%arg2: tensor<i8> loc("psum:"(#loc8)), %arg3: tensor<i8> loc("psum:"(#loc8))):
        %14 = stablehlo.add %arg2, %arg3 : tensor<i8> loc(#loc45)
        stablehlo.return %14 : tensor<i8> loc(#loc35)
      }) : (tensor<2x4xi8>) -> tensor<2x4xi8> loc(#loc35)
      %8 = stablehlo.convert %arg1 : (tensor<2x4xf32>) -> tensor<2x4xcomplex<f32>> loc(#loc37)
      %9 = stablehlo.broadcast_in_dim %cst, dims = [] : (tensor<complex<f32>>) -> tensor<2x4xcomplex<f32>> loc(#loc38)
      %10 = stablehlo.multiply %9, %8 : tensor<2x4xcomplex<f32>> loc(#loc38)
      %11 = stablehlo.convert %arg1 : (tensor<2x4xf32>) -> tensor<2x4xcomplex<f32>> loc(#loc39)
      %12 = stablehlo.add %11, %10 : tensor<2x4xcomplex<f32>> loc(#loc40)
      %13 = "stablehlo.all_reduce"(%12) <{channel_handle = #stablehlo.channel_handle<handle = 1, type = 0>, replica_groups = dense<[[0, 1, 2, 3, 4, 5, 6, 7]]> : tensor<1x8xi64>, use_global_device_ids}> ({
      ^bb0(%arg2: tensor<complex<f32>> loc("psum:"(#loc8)), %arg3: tensor<complex<f32>> loc("psum:"(#loc8))):
        %14 = stablehlo.add %arg2, %arg3 : tensor<complex<f32>> loc(#loc46)
        stablehlo.return %14 : tensor<complex<f32>> loc(#loc41)
      }) : (tensor<2x4xcomplex<f32>>) -> tensor<2x4xcomplex<f32>> loc(#loc41)
      sdy.return %7, %5, %13 : tensor<2x4xi8>, tensor<2x4xf32>, tensor<2x4xcomplex<f32>> loc(#loc18)
    } : (tensor<8x8xf32>) -> (tensor<2x8xi8>, tensor<8x4xf32>, tensor<2x4xcomplex<f32>>) loc(#loc47)
    return %0#0, %0#1, %0#2 : tensor<2x8xi8>, tensor<8x4xf32>, tensor<2x4xcomplex<f32>> loc(#loc48)
  } loc(#loc)
} loc(#loc)
