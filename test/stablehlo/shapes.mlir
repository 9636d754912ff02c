module @jit__lambda attributes {jax.uses_shape_polymorphism = false, mhlo.num_partitions = 1 : i32, mhlo.num_replicas = 1 : i32} {
  func.func public @main(%arg0: tensor<5x4xf32>) -> (tensor<8x5xf32> {jax.result_info = "result[0]"}, tensor<5x4xf32> {jax.result_info = "result[1]"}, tensor<2x2xf32> {jax.result_info = "result[2]"}, tensor<5x8xf32> {jax.result_info = "result[3]"}, tensor<4x5xf32> {jax.result_info = "result[4]"}, tensor<2x5x4xf32> {jax.result_info = "result[5]"}, tensor<5x4xf32> {jax.result_info = "result[6]"}, tensor<5x8xf32> {jax.result_info = "result[7]"}, tensor<5xi32> {jax.result_info = "result[8]"}) {
    %c = stablehlo.constant dense<0> : tensor<i32>
    %0 = call @_pad(%arg0, %c) : (tensor<5x4xf32>, tensor<i32>) -> tensor<8x5xf32>
    %1 = stablehlo.reverse %arg0, dims = [0] : tensor<5x4xf32>
    %2 = stablehlo.slice %arg0 [1:4:2, 0:4:2] : (tensor<5x4xf32>) -> tensor<2x2xf32>
    %3 = stablehlo.concatenate %arg0, %arg0, dim = 1 : (tensor<5x4xf32>, tensor<5x4xf32>) -> tensor<5x8xf32>
    %4 = stablehlo.transpose %arg0, dims = [1, 0] : (tensor<5x4xf32>) -> tensor<4x5xf32>
    %5 = stablehlo.broadcast_in_dim %arg0, dims = [1, 2] : (tensor<5x4xf32>) -> tensor<1x5x4xf32>
    %6 = stablehlo.broadcast_in_dim %arg0, dims = [1, 2] : (tensor<5x4xf32>) -> tensor<1x5x4xf32>
    %7 = stablehlo.concatenate %5, %6, dim = 0 : (tensor<1x5x4xf32>, tensor<1x5x4xf32>) -> tensor<2x5x4xf32>
    %8 = call @cumsum(%arg0) : (tensor<5x4xf32>) -> tensor<5x4xf32>
    %9 = stablehlo.broadcast_in_dim %arg0, dims = [0, 1] : (tensor<5x4xf32>) -> tensor<5x4x2xf32>
    %10 = stablehlo.reshape %9 : (tensor<5x4x2xf32>) -> tensor<5x8xf32>
    %11 = stablehlo.iota dim = 0 : tensor<5xi32>
    return %0, %1, %2, %3, %4, %7, %8, %10, %11 : tensor<8x5xf32>, tensor<5x4xf32>, tensor<2x2xf32>, tensor<5x8xf32>, tensor<4x5xf32>, tensor<2x5x4xf32>, tensor<5x4xf32>, tensor<5x8xf32>, tensor<5xi32>
  }
  func.func private @_pad(%arg0: tensor<5x4xf32>, %arg1: tensor<i32>) -> tensor<8x5xf32> {
    %0 = stablehlo.convert %arg1 : (tensor<i32>) -> tensor<f32>
    %1 = stablehlo.pad %arg0, %0, low = [1, 0], high = [2, 1], interior = [0, 0] : (tensor<5x4xf32>, tensor<f32>) -> tensor<8x5xf32>
    return %1 : tensor<8x5xf32>
  }
  func.func private @cumsum(%arg0: tensor<5x4xf32>) -> tensor<5x4xf32> {
    %0 = call @cumsum_0(%arg0) : (tensor<5x4xf32>) -> tensor<5x4xf32>
    return %0 : tensor<5x4xf32>
  }
  func.func private @cumsum_0(%arg0: tensor<5x4xf32>) -> tensor<5x4xf32> {
    %cst = stablehlo.constant dense<0.000000e+00> : tensor<f32>
    %0 = stablehlo.broadcast_in_dim %cst, dims = [] : (tensor<f32>) -> tensor<f32>
    %1 = "stablehlo.reduce_window"(%arg0, %0) <{padding = dense<[[4, 0], [0, 0]]> : tensor<2x2xi64>, window_dimensions = array<i64: 5, 1>}> ({
    ^bb0(%arg1: tensor<f32>, %arg2: tensor<f32>):
      %2 = stablehlo.add %arg1, %arg2 : tensor<f32>
      stablehlo.return %2 : tensor<f32>
    }) : (tensor<5x4xf32>, tensor<f32>) -> tensor<5x4xf32>
    return %1 : tensor<5x4xf32>
  }
}
