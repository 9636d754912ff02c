module @jit_loss attributes {jax.uses_shape_polymorphism = false, mhlo.num_partitions = 1 : i32, mhlo.num_replicas = 1 : i32} {
  func.func public @main(%arg0: tensor<8x3xf32>, %arg1: tensor<5x8xf32>, %arg2: tensor<5x3xf32>) -> (tensor<f32> {jax.result_info = "result[0]"}, tensor<8x3xf32> {jax.result_info = "result[1]"}) {
    %cst = stablehlo.constant dense<1.000000e+00> : tensor<f32>
    %cst_0 = stablehlo.constant dense<1.500000e+01> : tensor<f32>
    %cst_1 = stablehlo.constant dense<2.000000e+00> : tensor<f32>
    %cst_2 = stablehlo.constant dense<0.000000e+00> : tensor<f32>
    %0 = stablehlo.dot_general %arg1, %arg0, contracting_dims = [1] x [0] : (tensor<5x8xf32>, tensor<8x3xf32>) -> tensor<5x3xf32>
    %1 = call @relu(%0) : (tensor<5x3xf32>) -> tensor<5x3xf32>
    %2 = stablehlo.broadcast_in_dim %cst_2, dims = [] : (tensor<f32>) -> tensor<5x3xf32>
    %3 = stablehlo.compare GT, %0, %2, FLOAT : (tensor<5x3xf32>, tensor<5x3xf32>) -> tensor<5x3xi1>
    %4 = stablehlo.subtract %1, %arg2 : tensor<5x3xf32>
    %5 = stablehlo.multiply %4, %4 : tensor<5x3xf32>
    %6 = stablehlo.broadcast_in_dim %cst_1, dims = [] : (tensor<f32>) -> tensor<5x3xf32>
    %7 = stablehlo.multiply %6, %4 : tensor<5x3xf32>
    %8 = stablehlo.reduce(%5 init: %cst_2) applies stablehlo.add across dimensions = [0, 1] : (tensor<5x3xf32>, tensor<f32>) -> tensor<f32>
    %9 = stablehlo.divide %8, %cst_0 : tensor<f32>
    %10 = stablehlo.divide %cst, %cst_0 : tensor<f32>
    %11 = stablehlo.broadcast_in_dim %10, dims = [] : (tensor<f32>) -> tensor<5x3xf32>
    %12 = stablehlo.multiply %11, %7 : tensor<5x3xf32>
    %13 = stablehlo.broadcast_in_dim %cst_2, dims = [] : (tensor<f32>) -> tensor<5x3xf32>
    %14 = stablehlo.select %3, %12, %13 : tensor<5x3xi1>, tensor<5x3xf32>
    %15 = stablehlo.dot_general %14, %arg1, contracting_dims = [0] x [0] : (tensor<5x3xf32>, tensor<5x8xf32>) -> tensor<3x8xf32>
    %16 = stablehlo.transpose %15, dims = [1, 0] : (tensor<3x8xf32>) -> tensor<8x3xf32>
    return %9, %16 : tensor<f32>, tensor<8x3xf32>
  }
  func.func private @relu(%arg0: tensor<5x3xf32>) -> tensor<5x3xf32> {
    %cst = stablehlo.constant dense<0.000000e+00> : tensor<f32>
    %0 = stablehlo.broadcast_in_dim %cst, dims = [] : (tensor<f32>) -> tensor<5x3xf32>
    %1 = stablehlo.maximum %arg0, %0 : tensor<5x3xf32>
    return %1 : tensor<5x3xf32>
  }
}
