module @jit__lambda attributes {jax.uses_shape_polymorphism = true, mhlo.num_partitions = 1 : i32, mhlo.num_replicas = 1 : i32} {
  func.func public @main(%arg0: tensor<?x3xf32>) -> (tensor<f32> {jax.result_info = "result[0]"}, tensor<?x3xf32> {jax.result_info = "result[1]"}, tensor<?x3xf32> {jax.result_info = "result[2]"}, tensor<?x3xf32> {jax.result_info = "result[3]"}) {
    %c = stablehlo.constant dense<1> : tensor<i32>
    %0 = stablehlo.get_dimension_size %arg0, dim = 0 : (tensor<?x3xf32>) -> tensor<i32>
    %1 = stablehlo.compare GE, %0, %c, SIGNED : (tensor<i32>, tensor<i32>) -> tensor<i1>
    stablehlo.custom_call @shape_assertion(%1, %0) {api_version = 2 : i32, error_message = "Input shapes do not match the polymorphic shapes specification. Expected value >= 1 for dimension variable 'b'. Using the following polymorphic shapes specifications: args[0].shape = (b, 3). Obtained dimension variables: 'b' = {0} from specification 'b' for dimension args[0].shape[0] (= {0}), . Please see https://docs.jax.dev/en/latest/export/shape_poly.html#shape-assertion-errors for more details.", has_side_effect = true} : (tensor<i1>, tensor<i32>) -> ()
    %2:4 = call @_wrapped_jax_export_main(%0, %arg0) : (tensor<i32>, tensor<?x3xf32>) -> (tensor<f32>, tensor<?x3xf32>, tensor<?x3xf32>, tensor<?x3xf32>)
    return %2#0, %2#1, %2#2, %2#3 : tensor<f32>, tensor<?x3xf32>, tensor<?x3xf32>, tensor<?x3xf32>
  }
  func.func private @_wrapped_jax_export_main(%arg0: tensor<i32> {jax.global_constant = "b"}, %arg1: tensor<?x3xf32>) -> (tensor<f32> {jax.result_info = "result[0]"}, tensor<?x3xf32> {jax.result_info = "result[1]"}, tensor<?x3xf32> {jax.result_info = "result[2]"}, tensor<?x3xf32> {jax.result_info = "result[3]"}) {
    %cst = stablehlo.constant dense<1.000000e+00> : tensor<f32>
    %cst_0 = stablehlo.constant dense<2.000000e+00> : tensor<f32>
    %c = stablehlo.constant dense<true> : tensor<i1>
    %c_1 = stablehlo.constant dense<3> : tensor<1xi32>
    %cst_2 = stablehlo.constant dense<1.000000e+02> : tensor<f32>
    %c_3 = stablehlo.constant dense<3> : tensor<i32>
    %c_4 = stablehlo.constant dense<1> : tensor<i32>
    %c_5 = stablehlo.constant dense<0> : tensor<i32>
    %cst_6 = stablehlo.constant dense<0.000000e+00> : tensor<f32>
    %0:4 = stablehlo.while(%iterArg = %arg1, %iterArg_7 = %c_5, %iterArg_8 = %arg0, %iterArg_9 = %cst_6) : tensor<?x3xf32>, tensor<i32>, tensor<i32>, tensor<f32>
    cond {
      %19 = stablehlo.compare LT, %iterArg_7, %iterArg_8, SIGNED : (tensor<i32>, tensor<i32>) -> tensor<i1>
      stablehlo.return %19 : tensor<i1>
    } do {
      %19 = stablehlo.add %iterArg_7, %c_4 : tensor<i32>
      %20 = stablehlo.convert %iterArg_7 : tensor<i32>
      %21 = stablehlo.convert %arg0 : tensor<i32>
      %22 = stablehlo.compare LT, %20, %c_5, SIGNED : (tensor<i32>, tensor<i32>) -> tensor<i1>
      %23 = stablehlo.add %20, %21 : tensor<i32>
      %24 = stablehlo.select %22, %23, %20 : tensor<i1>, tensor<i32>
      %25 = stablehlo.compare LT, %c_5, %c_5, SIGNED : (tensor<i32>, tensor<i32>) -> tensor<i1>
      %26 = stablehlo.add %c_5, %c_3 : tensor<i32>
      %27 = stablehlo.select %25, %26, %c_5 : tensor<i1>, tensor<i32>
      %28 = stablehlo.dynamic_slice %iterArg, %24, %27, sizes = [1, 3] : (tensor<?x3xf32>, tensor<i32>, tensor<i32>) -> tensor<1x3xf32>
      %29 = stablehlo.reshape %28 : (tensor<1x3xf32>) -> tensor<3xf32>
      %30 = stablehlo.reduce(%29 init: %cst_6) applies stablehlo.add across dimensions = [0] : (tensor<3xf32>, tensor<f32>) -> tensor<f32>
      %31 = stablehlo.convert %iterArg_7 : (tensor<i32>) -> tensor<f32>
      %32 = stablehlo.multiply %30, %31 : tensor<f32>
      %33 = stablehlo.convert %iterArg_9 : tensor<f32>
      %34 = stablehlo.add %33, %32 : tensor<f32>
      stablehlo.return %iterArg, %19, %iterArg_8, %34 : tensor<?x3xf32>, tensor<i32>, tensor<i32>, tensor<f32>
    }
    %1 = stablehlo.abs %arg1 : tensor<?x3xf32>
    %2 = stablehlo.while(%iterArg = %1) : tensor<?x3xf32>
    cond {
      %19 = stablehlo.reshape %arg0 : (tensor<i32>) -> tensor<1xi32>
      %20 = stablehlo.concatenate %19, %c_1, dim = 0 : (tensor<1xi32>, tensor<1xi32>) -> tensor<2xi32>
      %21 = stablehlo.dynamic_broadcast_in_dim %cst_2, %20, dims = [] : (tensor<f32>, tensor<2xi32>) -> tensor<?x3xf32>
      %22 = stablehlo.compare LT, %iterArg, %21, FLOAT : (tensor<?x3xf32>, tensor<?x3xf32>) -> tensor<?x3xi1>
      %23 = stablehlo.reduce(%22 init: %c) applies stablehlo.and across dimensions = [0, 1] : (tensor<?x3xi1>, tensor<i1>) -> tensor<i1>
      stablehlo.return %23 : tensor<i1>
    } do {
      %19 = stablehlo.reshape %arg0 : (tensor<i32>) -> tensor<1xi32>
      %20 = stablehlo.concatenate %19, %c_1, dim = 0 : (tensor<1xi32>, tensor<1xi32>) -> tensor<2xi32>
      %21 = stablehlo.dynamic_broadcast_in_dim %cst_0, %20, dims = [] : (tensor<f32>, tensor<2xi32>) -> tensor<?x3xf32>
      %22 = stablehlo.multiply %iterArg, %21 : tensor<?x3xf32>
      %23 = stablehlo.convert %arg0 : (tensor<i32>) -> tensor<f32>
      %24 = stablehlo.reshape %arg0 : (tensor<i32>) -> tensor<1xi32>
      %25 = stablehlo.concatenate %24, %c_1, dim = 0 : (tensor<1xi32>, tensor<1xi32>) -> tensor<2xi32>
      %26 = stablehlo.dynamic_broadcast_in_dim %23, %25, dims = [] : (tensor<f32>, tensor<2xi32>) -> tensor<?x3xf32>
      %27 = stablehlo.add %22, %26 : tensor<?x3xf32>
      stablehlo.return %27 : tensor<?x3xf32>
    }
    %3 = stablehlo.reduce(%arg1 init: %cst_6) applies stablehlo.add across dimensions = [0, 1] : (tensor<?x3xf32>, tensor<f32>) -> tensor<f32>
    %4 = stablehlo.compare GT, %3, %cst_6, FLOAT : (tensor<f32>, tensor<f32>) -> tensor<i1>
    %5 = stablehlo.convert %4 : (tensor<i1>) -> tensor<i32>
    %6 = "stablehlo.case"(%5) ({
      %19 = stablehlo.convert %arg0 : (tensor<i32>) -> tensor<f32>
      %20 = stablehlo.reshape %arg0 : (tensor<i32>) -> tensor<1xi32>
      %21 = stablehlo.concatenate %20, %c_1, dim = 0 : (tensor<1xi32>, tensor<1xi32>) -> tensor<2xi32>
      %22 = stablehlo.dynamic_broadcast_in_dim %19, %21, dims = [] : (tensor<f32>, tensor<2xi32>) -> tensor<?x3xf32>
      %23 = stablehlo.subtract %arg1, %22 : tensor<?x3xf32>
      stablehlo.return %23 : tensor<?x3xf32>
    }, {
      %19 = stablehlo.convert %arg0 : (tensor<i32>) -> tensor<f32>
      %20 = stablehlo.reshape %arg0 : (tensor<i32>) -> tensor<1xi32>
      %21 = stablehlo.concatenate %20, %c_1, dim = 0 : (tensor<1xi32>, tensor<1xi32>) -> tensor<2xi32>
      %22 = stablehlo.dynamic_broadcast_in_dim %19, %21, dims = [] : (tensor<f32>, tensor<2xi32>) -> tensor<?x3xf32>
      %23 = stablehlo.add %arg1, %22 : tensor<?x3xf32>
      stablehlo.return %23 : tensor<?x3xf32>
    }) : (tensor<i32>) -> tensor<?x3xf32>
    %7 = stablehlo.reshape %arg0 : (tensor<i32>) -> tensor<1xi32>
    %8 = stablehlo.concatenate %7, %c_1, dim = 0 : (tensor<1xi32>, tensor<1xi32>) -> tensor<2xi32>
    %9 = stablehlo.dynamic_broadcast_in_dim %cst_0, %8, dims = [] : (tensor<f32>, tensor<2xi32>) -> tensor<?x3xf32>
    %10 = stablehlo.multiply %9, %arg1 : tensor<?x3xf32>
    %11 = stablehlo.convert %arg0 : tensor<i32>
    %12 = stablehlo.multiply %11, %c_3 : tensor<i32>
    %13 = stablehlo.convert %12 : (tensor<i32>) -> tensor<f32>
    %14 = stablehlo.divide %cst, %13 : tensor<f32>
    %15 = stablehlo.reshape %arg0 : (tensor<i32>) -> tensor<1xi32>
    %16 = stablehlo.concatenate %15, %c_1, dim = 0 : (tensor<1xi32>, tensor<1xi32>) -> tensor<2xi32>
    %17 = stablehlo.dynamic_broadcast_in_dim %14, %16, dims = [] : (tensor<f32>, tensor<2xi32>) -> tensor<?x3xf32>
    %18 = stablehlo.multiply %17, %10 : tensor<?x3xf32>
    return %0#3, %2, %6, %18 : tensor<f32>, tensor<?x3xf32>, tensor<?x3xf32>, tensor<?x3xf32>
  }
}
