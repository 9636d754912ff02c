module @jit__lambda attributes {jax.uses_shape_polymorphism = false, mhlo.num_partitions = 1 : i32, mhlo.num_replicas = 1 : i32} {
  func.func public @main(%arg0: tensor<3x20xf32>, %arg1: tensor<5x20xf32>, %arg2: tensor<20xf32>, %arg3: tensor<6x3xf32>) -> (tensor<3x20xf32> {jax.result_info = "result"}) {
    %cst = stablehlo.constant dense<1.000000e+00> : tensor<f32>
    %c = stablehlo.constant dense<1> : tensor<i32>
    %c_0 = stablehlo.constant dense<6> : tensor<i32>
    %c_1 = stablehlo.constant dense<0> : tensor<i32>
    %cst_2 = stablehlo.constant dense<0.000000e+00> : tensor<f32>
    %0 = stablehlo.broadcast_in_dim %cst_2, dims = [] : (tensor<f32>) -> tensor<5xf32>
    %1 = stablehlo.broadcast_in_dim %cst_2, dims = [] : (tensor<f32>) -> tensor<5xf32>
    %2 = stablehlo.broadcast_in_dim %cst_2, dims = [] : (tensor<f32>) -> tensor<6x5xf32>
    %3 = stablehlo.broadcast_in_dim %cst_2, dims = [] : (tensor<f32>) -> tensor<6x5xf32>
    %4 = stablehlo.broadcast_in_dim %cst_2, dims = [] : (tensor<f32>) -> tensor<6x5xf32>
    %5 = stablehlo.broadcast_in_dim %cst_2, dims = [] : (tensor<f32>) -> tensor<6x5xf32>
    %6 = stablehlo.broadcast_in_dim %cst_2, dims = [] : (tensor<f32>) -> tensor<6x5xf32>
    %7 = stablehlo.broadcast_in_dim %cst_2, dims = [] : (tensor<f32>) -> tensor<6x5xf32>
    %8 = stablehlo.broadcast_in_dim %cst_2, dims = [] : (tensor<f32>) -> tensor<6x5xf32>
    %9 = stablehlo.broadcast_in_dim %cst_2, dims = [] : (tensor<f32>) -> tensor<6x5xf32>
    %10 = stablehlo.broadcast_in_dim %cst_2, dims = [] : (tensor<f32>) -> tensor<6x5xf32>
    %11 = stablehlo.broadcast_in_dim %cst_2, dims = [] : (tensor<f32>) -> tensor<6x5xf32>
    %12 = stablehlo.broadcast_in_dim %cst_2, dims = [] : (tensor<f32>) -> tensor<6x5xf32>
    %13:18 = stablehlo.while(%iterArg = %arg3, %iterArg_3 = %arg0, %iterArg_4 = %arg1, %iterArg_5 = %arg2, %iterArg_6 = %c_1, %iterArg_7 = %0, %iterArg_8 = %1, %iterArg_9 = %2, %iterArg_10 = %3, %iterArg_11 = %4, %iterArg_12 = %5, %iterArg_13 = %6, %iterArg_14 = %7, %iterArg_15 = %8, %iterArg_16 = %9, %iterArg_17 = %10, %iterArg_18 = %11, %iterArg_19 = %12) : tensor<6x3xf32>, tensor<3x20xf32>, tensor<5x20xf32>, tensor<20xf32>, tensor<i32>, tensor<5xf32>, tensor<5xf32>, tensor<6x5xf32>, tensor<6x5xf32>, tensor<6x5xf32>, tensor<6x5xf32>, tensor<6x5xf32>, tensor<6x5xf32>, tensor<6x5xf32>, tensor<6x5xf32>, tensor<6x5xf32>, tensor<6x5xf32>, tensor<6x5xf32>
    cond {
      %19 = stablehlo.compare LT, %iterArg_6, %c_0, SIGNED : (tensor<i32>, tensor<i32>) -> tensor<i1>
      stablehlo.return %19 : tensor<i1>
    } do {
      %19 = func.call @dynamic_index_in_dim(%iterArg, %iterArg_6) : (tensor<6x3xf32>, tensor<i32>) -> tensor<3xf32>
      %20:13 = func.call @closed_call(%iterArg_3, %iterArg_4, %iterArg_5, %iterArg_7, %iterArg_8, %19) : (tensor<3x20xf32>, tensor<5x20xf32>, tensor<20xf32>, tensor<5xf32>, tensor<5xf32>, tensor<3xf32>) -> (tensor<5xf32>, tensor<5xf32>, tensor<5xf32>, tensor<5xf32>, tensor<5xf32>, tensor<5xf32>, tensor<5xf32>, tensor<5xf32>, tensor<5xf32>, tensor<5xf32>, tensor<5xf32>, tensor<5xf32>, tensor<5xf32>)
      %21 = func.call @dynamic_update_index_in_dim(%iterArg_9, %20#2, %iterArg_6) : (tensor<6x5xf32>, tensor<5xf32>, tensor<i32>) -> tensor<6x5xf32>
      %22 = func.call @dynamic_update_index_in_dim(%iterArg_10, %20#3, %iterArg_6) : (tensor<6x5xf32>, tensor<5xf32>, tensor<i32>) -> tensor<6x5xf32>
      %23 = func.call @dynamic_update_index_in_dim(%iterArg_11, %20#4, %iterArg_6) : (tensor<6x5xf32>, tensor<5xf32>, tensor<i32>) -> tensor<6x5xf32>
      %24 = func.call @dynamic_update_index_in_dim(%iterArg_12, %20#5, %iterArg_6) : (tensor<6x5xf32>, tensor<5xf32>, tensor<i32>) -> tensor<6x5xf32>
      %25 = func.call @dynamic_update_index_in_dim(%iterArg_13, %20#6, %iterArg_6) : (tensor<6x5xf32>, tensor<5xf32>, tensor<i32>) -> tensor<6x5xf32>
      %26 = func.call @dynamic_update_index_in_dim(%iterArg_14, %20#7, %iterArg_6) : (tensor<6x5xf32>, tensor<5xf32>, tensor<i32>) -> tensor<6x5xf32>
      %27 = func.call @dynamic_update_index_in_dim(%iterArg_15, %20#8, %iterArg_6) : (tensor<6x5xf32>, tensor<5xf32>, tensor<i32>) -> tensor<6x5xf32>
      %28 = func.call @dynamic_update_index_in_dim(%iterArg_16, %20#9, %iterArg_6) : (tensor<6x5xf32>, tensor<5xf32>, tensor<i32>) -> tensor<6x5xf32>
      %29 = func.call @dynamic_update_index_in_dim(%iterArg_17, %20#10, %iterArg_6) : (tensor<6x5xf32>, tensor<5xf32>, tensor<i32>) -> tensor<6x5xf32>
      %30 = func.call @dynamic_update_index_in_dim(%iterArg_18, %20#11, %iterArg_6) : (tensor<6x5xf32>, tensor<5xf32>, tensor<i32>) -> tensor<6x5xf32>
      %31 = func.call @dynamic_update_index_in_dim(%iterArg_19, %20#12, %iterArg_6) : (tensor<6x5xf32>, tensor<5xf32>, tensor<i32>) -> tensor<6x5xf32>
      %32 = stablehlo.add %iterArg_6, %c : tensor<i32>
      stablehlo.return %iterArg, %iterArg_3, %iterArg_4, %iterArg_5, %32, %20#0, %20#1, %21, %22, %23, %24, %25, %26, %27, %28, %29, %30, %31 : tensor<6x3xf32>, tensor<3x20xf32>, tensor<5x20xf32>, tensor<20xf32>, tensor<i32>, tensor<5xf32>, tensor<5xf32>, tensor<6x5xf32>, tensor<6x5xf32>, tensor<6x5xf32>, tensor<6x5xf32>, tensor<6x5xf32>, tensor<6x5xf32>, tensor<6x5xf32>, tensor<6x5xf32>, tensor<6x5xf32>, tensor<6x5xf32>, tensor<6x5xf32>
    }
    %14 = stablehlo.broadcast_in_dim %cst, dims = [] : (tensor<f32>) -> tensor<6x5xf32>
    %15 = stablehlo.broadcast_in_dim %cst_2, dims = [] : (tensor<f32>) -> tensor<5xf32>
    %16 = stablehlo.broadcast_in_dim %cst_2, dims = [] : (tensor<f32>) -> tensor<5xf32>
    %17 = stablehlo.broadcast_in_dim %cst_2, dims = [] : (tensor<f32>) -> tensor<3x20xf32>
    %18:18 = stablehlo.while(%iterArg = %14, %iterArg_3 = %arg3, %iterArg_4 = %13#7, %iterArg_5 = %13#8, %iterArg_6 = %13#9, %iterArg_7 = %13#10, %iterArg_8 = %13#11, %iterArg_9 = %13#12, %iterArg_10 = %13#13, %iterArg_11 = %13#14, %iterArg_12 = %13#15, %iterArg_13 = %13#16, %iterArg_14 = %13#17, %iterArg_15 = %arg1, %iterArg_16 = %c_1, %iterArg_17 = %17, %iterArg_18 = %15, %iterArg_19 = %16) : tensor<6x5xf32>, tensor<6x3xf32>, tensor<6x5xf32>, tensor<6x5xf32>, tensor<6x5xf32>, tensor<6x5xf32>, tensor<6x5xf32>, tensor<6x5xf32>, tensor<6x5xf32>, tensor<6x5xf32>, tensor<6x5xf32>, tensor<6x5xf32>, tensor<6x5xf32>, tensor<5x20xf32>, tensor<i32>, tensor<3x20xf32>, tensor<5xf32>, tensor<5xf32>
    cond {
      %19 = stablehlo.compare LT, %iterArg_16, %c_0, SIGNED : (tensor<i32>, tensor<i32>) -> tensor<i1>
      stablehlo.return %19 : tensor<i1>
    } do {
      %19 = stablehlo.subtract %c_0, %iterArg_16 : tensor<i32>
      %20 = stablehlo.subtract %19, %c : tensor<i32>
      %21 = func.call @dynamic_index_in_dim_0(%iterArg, %20) : (tensor<6x5xf32>, tensor<i32>) -> tensor<5xf32>
      %22 = func.call @dynamic_index_in_dim(%iterArg_3, %20) : (tensor<6x3xf32>, tensor<i32>) -> tensor<3xf32>
      %23 = func.call @dynamic_index_in_dim_0(%iterArg_4, %20) : (tensor<6x5xf32>, tensor<i32>) -> tensor<5xf32>
      %24 = func.call @dynamic_index_in_dim_0(%iterArg_5, %20) : (tensor<6x5xf32>, tensor<i32>) -> tensor<5xf32>
      %25 = func.call @dynamic_index_in_dim_0(%iterArg_6, %20) : (tensor<6x5xf32>, tensor<i32>) -> tensor<5xf32>
      %26 = func.call @dynamic_index_in_dim_0(%iterArg_7, %20) : (tensor<6x5xf32>, tensor<i32>) -> tensor<5xf32>
      %27 = func.call @dynamic_index_in_dim_0(%iterArg_8, %20) : (tensor<6x5xf32>, tensor<i32>) -> tensor<5xf32>
      %28 = func.call @dynamic_index_in_dim_0(%iterArg_9, %20) : (tensor<6x5xf32>, tensor<i32>) -> tensor<5xf32>
      %29 = func.call @dynamic_index_in_dim_0(%iterArg_10, %20) : (tensor<6x5xf32>, tensor<i32>) -> tensor<5xf32>
      %30 = func.call @dynamic_index_in_dim_0(%iterArg_11, %20) : (tensor<6x5xf32>, tensor<i32>) -> tensor<5xf32>
      %31 = func.call @dynamic_index_in_dim_0(%iterArg_12, %20) : (tensor<6x5xf32>, tensor<i32>) -> tensor<5xf32>
      %32 = func.call @dynamic_index_in_dim_0(%iterArg_13, %20) : (tensor<6x5xf32>, tensor<i32>) -> tensor<5xf32>
      %33 = func.call @dynamic_index_in_dim_0(%iterArg_14, %20) : (tensor<6x5xf32>, tensor<i32>) -> tensor<5xf32>
      %34:3 = func.call @closed_call_1(%iterArg_15, %iterArg_17, %iterArg_18, %iterArg_19, %21, %22, %23, %24, %25, %26, %27, %28, %29, %30, %31, %32, %33) : (tensor<5x20xf32>, tensor<3x20xf32>, tensor<5xf32>, tensor<5xf32>, tensor<5xf32>, tensor<3xf32>, tensor<5xf32>, tensor<5xf32>, tensor<5xf32>, tensor<5xf32>, tensor<5xf32>, tensor<5xf32>, tensor<5xf32>, tensor<5xf32>, tensor<5xf32>, tensor<5xf32>, tensor<5xf32>) -> (tensor<3x20xf32>, tensor<5xf32>, tensor<5xf32>)
      %35 = stablehlo.add %iterArg_16, %c : tensor<i32>
      stablehlo.return %iterArg, %iterArg_3, %iterArg_4, %iterArg_5, %iterArg_6, %iterArg_7, %iterArg_8, %iterArg_9, %iterArg_10, %iterArg_11, %iterArg_12, %iterArg_13, %iterArg_14, %iterArg_15, %35, %34#0, %34#1, %34#2 : tensor<6x5xf32>, tensor<6x3xf32>, tensor<6x5xf32>, tensor<6x5xf32>, tensor<6x5xf32>, tensor<6x5xf32>, tensor<6x5xf32>, tensor<6x5xf32>, tensor<6x5xf32>, tensor<6x5xf32>, tensor<6x5xf32>, tensor<6x5xf32>, tensor<6x5xf32>, tensor<5x20xf32>, tensor<i32>, tensor<3x20xf32>, tensor<5xf32>, tensor<5xf32>
    }
    return %18#15 : tensor<3x20xf32>
  }
  func.func private @dynamic_index_in_dim(%arg0: tensor<6x3xf32>, %arg1: tensor<i32>) -> tensor<3xf32> {
    %c = stablehlo.constant dense<0> : tensor<i32>
    %0 = stablehlo.dynamic_slice %arg0, %arg1, %c, sizes = [1, 3] : (tensor<6x3xf32>, tensor<i32>, tensor<i32>) -> tensor<1x3xf32>
    %1 = stablehlo.reshape %0 : (tensor<1x3xf32>) -> tensor<3xf32>
    return %1 : tensor<3xf32>
  }
  func.func private @closed_call(%arg0: tensor<3x20xf32>, %arg1: tensor<5x20xf32>, %arg2: tensor<20xf32>, %arg3: tensor<5xf32>, %arg4: tensor<5xf32>, %arg5: tensor<3xf32>) -> (tensor<5xf32>, tensor<5xf32>, tensor<5xf32>, tensor<5xf32>, tensor<5xf32>, tensor<5xf32>, tensor<5xf32>, tensor<5xf32>, tensor<5xf32>, tensor<5xf32>, tensor<5xf32>, tensor<5xf32>, tensor<5xf32>) {
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
    %14 = stablehlo.broadcast_in_dim %cst, dims = [] : (tensor<f32>) -> tensor<5xf32>
    %15 = stablehlo.subtract %14, %13 : tensor<5xf32>
    %16 = stablehlo.multiply %13, %15 : tensor<5xf32>
    %17 = stablehlo.multiply %13, %arg4 : tensor<5xf32>
    %18 = stablehlo.negate %4 : tensor<5xf32>
    %19 = stablehlo.exponential %18 : tensor<5xf32>
    %20 = stablehlo.broadcast_in_dim %cst, dims = [] : (tensor<f32>) -> tensor<5xf32>
    %21 = stablehlo.add %20, %19 : tensor<5xf32>
    %22 = stablehlo.broadcast_in_dim %cst, dims = [] : (tensor<f32>) -> tensor<5xf32>
    %23 = stablehlo.divide %22, %21 : tensor<5xf32>
    %24 = stablehlo.broadcast_in_dim %cst, dims = [] : (tensor<f32>) -> tensor<5xf32>
    %25 = stablehlo.subtract %24, %23 : tensor<5xf32>
    %26 = stablehlo.multiply %23, %25 : tensor<5xf32>
    %27 = stablehlo.tanh %6 : tensor<5xf32>
    %28 = stablehlo.broadcast_in_dim %cst, dims = [] : (tensor<f32>) -> tensor<5xf32>
    %29 = stablehlo.subtract %28, %27 : tensor<5xf32>
    %30 = stablehlo.multiply %23, %27 : tensor<5xf32>
    %31 = stablehlo.add %17, %30 : tensor<5xf32>
    %32 = stablehlo.negate %7 : tensor<5xf32>
    %33 = stablehlo.exponential %32 : tensor<5xf32>
    %34 = stablehlo.broadcast_in_dim %cst, dims = [] : (tensor<f32>) -> tensor<5xf32>
    %35 = stablehlo.add %34, %33 : tensor<5xf32>
    %36 = stablehlo.broadcast_in_dim %cst, dims = [] : (tensor<f32>) -> tensor<5xf32>
    %37 = stablehlo.divide %36, %35 : tensor<5xf32>
    %38 = stablehlo.broadcast_in_dim %cst, dims = [] : (tensor<f32>) -> tensor<5xf32>
    %39 = stablehlo.subtract %38, %37 : tensor<5xf32>
    %40 = stablehlo.multiply %37, %39 : tensor<5xf32>
    %41 = stablehlo.tanh %31 : tensor<5xf32>
    %42 = stablehlo.broadcast_in_dim %cst, dims = [] : (tensor<f32>) -> tensor<5xf32>
    %43 = stablehlo.subtract %42, %41 : tensor<5xf32>
    %44 = stablehlo.multiply %37, %41 : tensor<5xf32>
    return %44, %31, %16, %arg4, %13, %26, %27, %29, %23, %40, %41, %43, %37 : tensor<5xf32>, tensor<5xf32>, tensor<5xf32>, tensor<5xf32>, tensor<5xf32>, tensor<5xf32>, tensor<5xf32>, tensor<5xf32>, tensor<5xf32>, tensor<5xf32>, tensor<5xf32>, tensor<5xf32>, tensor<5xf32>
  }
  func.func private @dynamic_update_index_in_dim(%arg0: tensor<6x5xf32>, %arg1: tensor<5xf32>, %arg2: tensor<i32>) -> tensor<6x5xf32> {
    %c = stablehlo.constant dense<0> : tensor<i32>
    %0 = stablehlo.broadcast_in_dim %arg1, dims = [1] : (tensor<5xf32>) -> tensor<1x5xf32>
    %1 = stablehlo.dynamic_update_slice %arg0, %0, %arg2, %c : (tensor<6x5xf32>, tensor<1x5xf32>, tensor<i32>, tensor<i32>) -> tensor<6x5xf32>
    return %1 : tensor<6x5xf32>
  }
  func.func private @dynamic_index_in_dim_0(%arg0: tensor<6x5xf32>, %arg1: tensor<i32>) -> tensor<5xf32> {
    %c = stablehlo.constant dense<0> : tensor<i32>
    %0 = stablehlo.dynamic_slice %arg0, %arg1, %c, sizes = [1, 5] : (tensor<6x5xf32>, tensor<i32>, tensor<i32>) -> tensor<1x5xf32>
    %1 = stablehlo.reshape %0 : (tensor<1x5xf32>) -> tensor<5xf32>
    return %1 : tensor<5xf32>
  }
  func.func private @closed_call_1(%arg0: tensor<5x20xf32>, %arg1: tensor<3x20xf32>, %arg2: tensor<5xf32>, %arg3: tensor<5xf32>, %arg4: tensor<5xf32>, %arg5: tensor<3xf32>, %arg6: tensor<5xf32>, %arg7: tensor<5xf32>, %arg8: tensor<5xf32>, %arg9: tensor<5xf32>, %arg10: tensor<5xf32>, %arg11: tensor<5xf32>, %arg12: tensor<5xf32>, %arg13: tensor<5xf32>, %arg14: tensor<5xf32>, %arg15: tensor<5xf32>, %arg16: tensor<5xf32>) -> (tensor<3x20xf32>, tensor<5xf32>, tensor<5xf32>) {
    %0 = stablehlo.add %arg2, %arg4 : tensor<5xf32>
    %1 = stablehlo.multiply %arg16, %0 : tensor<5xf32>
    %2 = stablehlo.multiply %0, %arg14 : tensor<5xf32>
    %3 = stablehlo.multiply %1, %arg15 : tensor<5xf32>
    %4 = stablehlo.add %arg3, %3 : tensor<5xf32>
    %5 = stablehlo.multiply %3, %arg14 : tensor<5xf32>
    %6 = stablehlo.add %4, %5 : tensor<5xf32>
    %7 = stablehlo.multiply %2, %arg13 : tensor<5xf32>
    %8 = stablehlo.multiply %arg12, %6 : tensor<5xf32>
    %9 = stablehlo.multiply %6, %arg10 : tensor<5xf32>
    %10 = stablehlo.multiply %8, %arg11 : tensor<5xf32>
    %11 = stablehlo.multiply %10, %arg10 : tensor<5xf32>
    %12 = stablehlo.add %10, %11 : tensor<5xf32>
    %13 = stablehlo.multiply %9, %arg9 : tensor<5xf32>
    %14 = stablehlo.multiply %arg8, %6 : tensor<5xf32>
    %15 = stablehlo.multiply %6, %arg7 : tensor<5xf32>
    %16 = stablehlo.multiply %15, %arg6 : tensor<5xf32>
    %17 = stablehlo.concatenate %13, %16, %12, %7, dim = 0 : (tensor<5xf32>, tensor<5xf32>, tensor<5xf32>, tensor<5xf32>) -> tensor<20xf32>
    %18 = stablehlo.dot_general %17, %arg0, contracting_dims = [0] x [1] : (tensor<20xf32>, tensor<5x20xf32>) -> tensor<5xf32>
    %19 = stablehlo.dot_general %17, %arg5, contracting_dims = [] x [] : (tensor<20xf32>, tensor<3xf32>) -> tensor<20x3xf32>
    %20 = stablehlo.transpose %19, dims = [1, 0] : (tensor<20x3xf32>) -> tensor<3x20xf32>
    %21 = stablehlo.add %arg1, %20 : tensor<3x20xf32>
    return %21, %18, %14 : tensor<3x20xf32>, tensor<5xf32>, tensor<5xf32>
  }
}
