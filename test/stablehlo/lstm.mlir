module @jit_lstm attributes {jax.uses_shape_polymorphism = false, mhlo.num_partitions = 1 : i32, mhlo.num_replicas = 1 : i32} {
  func.func public @main(%arg0: tensor<3x20xf32>, %arg1: tensor<5x20xf32>, %arg2: tensor<20xf32>, %arg3: tensor<6x3xf32>) -> (tensor<5xf32> {jax.result_info = "result[0][0]"}, tensor<5xf32> {jax.result_info = "result[0][1]"}, tensor<6x5xf32> {jax.result_info = "result[1]"}) {
    %c = stablehlo.constant dense<1> : tensor<i32>
    %c_0 = stablehlo.constant dense<6> : tensor<i32>
    %c_1 = stablehlo.constant dense<0> : tensor<i32>
    %cst = stablehlo.constant dense<0.000000e+00> : tensor<f32>
    %0 = stablehlo.broadcast_in_dim %cst, dims = [] : (tensor<f32>) -> tensor<5xf32>
    %1 = stablehlo.broadcast_in_dim %cst, dims = [] : (tensor<f32>) -> tensor<5xf32>
    %2 = stablehlo.broadcast_in_dim %cst, dims = [] : (tensor<f32>) -> tensor<6x5xf32>
    %3:8 = stablehlo.while(%iterArg = %arg3, %iterArg_2 = %arg0, %iterArg_3 = %arg1, %iterArg_4 = %arg2, %iterArg_5 = %c_1, %iterArg_6 = %0, %iterArg_7 = %1, %iterArg_8 = %2) : tensor<6x3xf32>, tensor<3x20xf32>, tensor<5x20xf32>, tensor<20xf32>, tensor<i32>, tensor<5xf32>, tensor<5xf32>, tensor<6x5xf32>
    cond {
      %4 = stablehlo.compare LT, %iterArg_5, %c_0, SIGNED : (tensor<i32>, tensor<i32>) -> tensor<i1>
      stablehlo.return %4 : tensor<i1>
    } do {
      %4 = func.call @dynamic_index_in_dim(%iterArg, %iterArg_5) : (tensor<6x3xf32>, tensor<i32>) -> tensor<3xf32>
      %5:3 = func.call @closed_call(%iterArg_2, %iterArg_3, %iterArg_4, %iterArg_6, %iterArg_7, %4) : (tensor<3x20xf32>, tensor<5x20xf32>, tensor<20xf32>, tensor<5xf32>, tensor<5xf32>, tensor<3xf32>) -> (tensor<5xf32>, tensor<5xf32>, tensor<5xf32>)
      %6 = func.call @dynamic_update_index_in_dim(%iterArg_8, %5#2, %iterArg_5) : (tensor<6x5xf32>, tensor<5xf32>, tensor<i32>) -> tensor<6x5xf32>
      %7 = stablehlo.add %iterArg_5, %c : tensor<i32>
      stablehlo.return %iterArg, %iterArg_2, %iterArg_3, %iterArg_4, %7, %5#0, %5#1, %6 : tensor<6x3xf32>, tensor<3x20xf32>, tensor<5x20xf32>, tensor<20xf32>, tensor<i32>, tensor<5xf32>, tensor<5xf32>, tensor<6x5xf32>
    }
    return %3#5, %3#6, %3#7 : tensor<5xf32>, tensor<5xf32>, tensor<6x5xf32>
  }
  func.func private @dynamic_index_in_dim(%arg0: tensor<6x3xf32>, %arg1: tensor<i32>) -> tensor<3xf32> {
    %c = stablehlo.constant dense<0> : tensor<i32>
    %0 = stablehlo.dynamic_slice %arg0, %arg1, %c, sizes = [1, 3] : (tensor<6x3xf32>, tensor<i32>, tensor<i32>) -> tensor<1x3xf32>
    %1 = stablehlo.reshape %0 : (tensor<1x3xf32>) -> tensor<3xf32>
    return %1 : tensor<3xf32>
  }
  func.func private @closed_call(%arg0: tensor<3x20xf32>, %arg1: tensor<5x20xf32>, %arg2: tensor<20xf32>, %arg3: tensor<5xf32>, %arg4: tensor<5xf32>, %arg5: tensor<3xf32>) -> (tensor<5xf32>, tensor<5xf32>, tensor<5xf32>) {
    %cst = stablehlo.constant dense<1.000000e+00> : tensor<f32>
    %0 = stablehlo.dot_general %arg5, %arg0, contracting_dims = [0] x [0] : (tensor<3xf32>, tensor<3x20xf32>) -> tensor<20xf32>
    %1 = stablehlo.dot_general %arg3, %arg1, contracting_dims = [0] x [0] : (tensor<5xf32>, tensor<5x20xf32>) -> tensor<20xf32>
    %2 = stablehlo.add %0, %1 : tensor<20xf32>
    %3 = stablehlo.add %2, %arg2 : tensor<20xf32>
    %4 = stablehlo.slice %3 [0:5] : (tensor<20xf32>) -> tensor<5xf32>
    %5 = stablehlo.slice %3 [5:10] : (tensor<20xf32>) -> tensor<5xf32>
    %6 = stablehlo.slice %3 [10:15] : (tensor<20xf32>) -> tensor<5xf32>
    %7 = stablehlo.slice %3 [15:20] : (tensor<20xf32>) -> tensor<5xf32>
    %8 = stablehlo.negate %5 : tensor<5xf32>
    %9 = stablehlo.exponential %8 : tensor<5xf32>
    %10 = stablehlo.broadcast_in_dim %cst, dims = [] : (tensor<f32>) -> tensor<5xf32>
    %11 = stablehlo.add %10, %9 : tensor<5xf32>
    %12 = stablehlo.broadcast_in_dim %cst, dims = [] : (tensor<f32>) -> tensor<5xf32>
    %13 = stablehlo.divide %12, %11 : tensor<5xf32>
    %14 = stablehlo.multiply %13, %arg4 : tensor<5xf32>
    %15 = stablehlo.negate %4 : tensor<5xf32>
    %16 = stablehlo.exponential %15 : tensor<5xf32>
    %17 = stablehlo.broadcast_in_dim %cst, dims = [] : (tensor<f32>) -> tensor<5xf32>
    %18 = stablehlo.add %17, %16 : tensor<5xf32>
    %19 = stablehlo.broadcast_in_dim %cst, dims = [] : (tensor<f32>) -> tensor<5xf32>
    %20 = stablehlo.divide %19, %18 : tensor<5xf32>
    %21 = stablehlo.tanh %6 : tensor<5xf32>
    %22 = stablehlo.multiply %20, %21 : tensor<5xf32>
    %23 = stablehlo.add %14, %22 : tensor<5xf32>
    %24 = stablehlo.negate %7 : tensor<5xf32>
    %25 = stablehlo.exponential %24 : tensor<5xf32>
    %26 = stablehlo.broadcast_in_dim %cst, dims = [] : (tensor<f32>) -> tensor<5xf32>
    %27 = stablehlo.add %26, %25 : tensor<5xf32>
    %28 = stablehlo.broadcast_in_dim %cst, dims = [] : (tensor<f32>) -> tensor<5xf32>
    %29 = stablehlo.divide %28, %27 : tensor<5xf32>
    %30 = stablehlo.tanh %23 : tensor<5xf32>
    %31 = stablehlo.multiply %29, %30 : tensor<5xf32>
    return %31, %23, %31 : tensor<5xf32>, tensor<5xf32>, tensor<5xf32>
  }
  func.func private @dynamic_update_index_in_dim(%arg0: tensor<6x5xf32>, %arg1: tensor<5xf32>, %arg2: tensor<i32>) -> tensor<6x5xf32> {
    %c = stablehlo.constant dense<0> : tensor<i32>
    %0 = stablehlo.broadcast_in_dim %arg1, dims = [1] : (tensor<5xf32>) -> tensor<1x5xf32>
    %1 = stablehlo.dynamic_update_slice %arg0, %0, %arg2, %c : (tensor<6x5xf32>, tensor<1x5xf32>, tensor<i32>, tensor<i32>) -> tensor<6x5xf32>
    return %1 : tensor<6x5xf32>
  }
}
