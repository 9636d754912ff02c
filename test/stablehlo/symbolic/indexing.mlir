module @jit__lambda attributes {jax.uses_shape_polymorphism = true, mhlo.num_partitions = 1 : i32, mhlo.num_replicas = 1 : i32} {
  func.func public @main(%arg0: tensor<?x3xf32>, %arg1: tensor<?xi32>) -> (tensor<?x3xf32> {jax.result_info = "result[0]"}, tensor<?x1xf32> {jax.result_info = "result[1]"}, tensor<?x3xf32> {jax.result_info = "result[2]"}, tensor<3xf32> {jax.result_info = "result[3]"}, tensor<3xf32> {jax.result_info = "result[4]"}, tensor<?x3xf32> {jax.result_info = "result[5]"}) {
    %c = stablehlo.constant dense<1> : tensor<i32>
    %0 = stablehlo.get_dimension_size %arg0, dim = 0 : (tensor<?x3xf32>) -> tensor<i32>
    %1 = stablehlo.get_dimension_size %arg1, dim = 0 : (tensor<?xi32>) -> tensor<i32>
    %2 = stablehlo.compare GE, %0, %c, SIGNED : (tensor<i32>, tensor<i32>) -> tensor<i1>
    stablehlo.custom_call @shape_assertion(%2, %0) {api_version = 2 : i32, error_message = "Input shapes do not match the polymorphic shapes specification. Expected value >= 1 for dimension variable 'b'. Using the following polymorphic shapes specifications: args[0].shape = (b, 3),args[1].shape = (b,). Obtained dimension variables: 'b' = {0} from specification 'b' for dimension args[0].shape[0] (= {0}), . Please see https://docs.jax.dev/en/latest/export/shape_poly.html#shape-assertion-errors for more details.", has_side_effect = true} : (tensor<i1>, tensor<i32>) -> ()
    %3 = stablehlo.compare EQ, %1, %0, SIGNED : (tensor<i32>, tensor<i32>) -> tensor<i1>
    stablehlo.custom_call @shape_assertion(%3, %1, %0) {api_version = 2 : i32, error_message = "Input shapes do not match the polymorphic shapes specification. Found inconsistency between dimension size args[1].shape[0] (= {0}) and the specification 'b' (= {1}). Using the following polymorphic shapes specifications: args[0].shape = (b, 3),args[1].shape = (b,). Obtained dimension variables: 'b' = {1} from specification 'b' for dimension args[0].shape[0] (= {1}), . Please see https://docs.jax.dev/en/latest/export/shape_poly.html#shape-assertion-errors for more details.", has_side_effect = true} : (tensor<i1>, tensor<i32>, tensor<i32>) -> ()
    %4:6 = call @_wrapped_jax_export_main(%0, %arg0, %arg1) : (tensor<i32>, tensor<?x3xf32>, tensor<?xi32>) -> (tensor<?x3xf32>, tensor<?x1xf32>, tensor<?x3xf32>, tensor<3xf32>, tensor<3xf32>, tensor<?x3xf32>)
    return %4#0, %4#1, %4#2, %4#3, %4#4, %4#5 : tensor<?x3xf32>, tensor<?x1xf32>, tensor<?x3xf32>, tensor<3xf32>, tensor<3xf32>, tensor<?x3xf32>
  }
  func.func private @_wrapped_jax_export_main(%arg0: tensor<i32> {jax.global_constant = "b"}, %arg1: tensor<?x3xf32>, %arg2: tensor<?xi32>) -> (tensor<?x3xf32> {jax.result_info = "result[0]"}, tensor<?x1xf32> {jax.result_info = "result[1]"}, tensor<?x3xf32> {jax.result_info = "result[2]"}, tensor<3xf32> {jax.result_info = "result[3]"}, tensor<3xf32> {jax.result_info = "result[4]"}, tensor<?x3xf32> {jax.result_info = "result[5]"}) {
    %c = stablehlo.constant dense<-1> : tensor<i32>
    %c_0 = stablehlo.constant dense<3> : tensor<1xi32>
    %c_1 = stablehlo.constant dense<3> : tensor<i32>
    %cst = stablehlo.constant dense<1.000000e+00> : tensor<f32>
    %c_2 = stablehlo.constant dense<1> : tensor<1xi32>
    %c_3 = stablehlo.constant dense<0> : tensor<i32>
    %0 = stablehlo.convert %arg0 : tensor<i32>
    %1 = stablehlo.reshape %arg0 : (tensor<i32>) -> tensor<1xi32>
    %2 = stablehlo.dynamic_broadcast_in_dim %c_3, %1, dims = [] : (tensor<i32>, tensor<1xi32>) -> tensor<?xi32>
    %3 = stablehlo.compare LT, %arg2, %2, SIGNED : (tensor<?xi32>, tensor<?xi32>) -> tensor<?xi1>
    %4 = stablehlo.reshape %arg0 : (tensor<i32>) -> tensor<1xi32>
    %5 = stablehlo.dynamic_broadcast_in_dim %0, %4, dims = [] : (tensor<i32>, tensor<1xi32>) -> tensor<?xi32>
    %6 = stablehlo.add %arg2, %5 : tensor<?xi32>
    %7 = stablehlo.select %3, %6, %arg2 : tensor<?xi1>, tensor<?xi32>
    %8 = stablehlo.reshape %arg0 : (tensor<i32>) -> tensor<1xi32>
    %9 = stablehlo.concatenate %8, %c_2, dim = 0 : (tensor<1xi32>, tensor<1xi32>) -> tensor<2xi32>
    %10 = stablehlo.dynamic_broadcast_in_dim %7, %9, dims = [0] : (tensor<?xi32>, tensor<2xi32>) -> tensor<?x1xi32>
    %11 = "stablehlo.gather"(%arg1, %10) <{dimension_numbers = #stablehlo.gather<offset_dims = [1], collapsed_slice_dims = [0], start_index_map = [0], index_vector_dim = 1>, slice_sizes = array<i64: 1, 3>}> : (tensor<?x3xf32>, tensor<?x1xi32>) -> tensor<?x3xf32>
    %12 = stablehlo.reshape %arg0 : (tensor<i32>) -> tensor<1xi32>
    %13 = stablehlo.concatenate %12, %c_2, dim = 0 : (tensor<1xi32>, tensor<1xi32>) -> tensor<2xi32>
    %14 = stablehlo.dynamic_broadcast_in_dim %arg2, %13, dims = [0] : (tensor<?xi32>, tensor<2xi32>) -> tensor<?x1xi32>
    %15 = call @take_along_axis(%arg0, %arg1, %14) : (tensor<i32>, tensor<?x3xf32>, tensor<?x1xi32>) -> tensor<?x1xf32>
    %16 = stablehlo.convert %arg0 : tensor<i32>
    %17 = stablehlo.reshape %arg0 : (tensor<i32>) -> tensor<1xi32>
    %18 = stablehlo.dynamic_broadcast_in_dim %c_3, %17, dims = [] : (tensor<i32>, tensor<1xi32>) -> tensor<?xi32>
    %19 = stablehlo.compare LT, %arg2, %18, SIGNED : (tensor<?xi32>, tensor<?xi32>) -> tensor<?xi1>
    %20 = stablehlo.reshape %arg0 : (tensor<i32>) -> tensor<1xi32>
    %21 = stablehlo.dynamic_broadcast_in_dim %16, %20, dims = [] : (tensor<i32>, tensor<1xi32>) -> tensor<?xi32>
    %22 = stablehlo.add %arg2, %21 : tensor<?xi32>
    %23 = stablehlo.select %19, %22, %arg2 : tensor<?xi1>, tensor<?xi32>
    %24 = stablehlo.reshape %arg0 : (tensor<i32>) -> tensor<1xi32>
    %25 = stablehlo.concatenate %24, %c_2, dim = 0 : (tensor<1xi32>, tensor<1xi32>) -> tensor<2xi32>
    %26 = stablehlo.dynamic_broadcast_in_dim %23, %25, dims = [0] : (tensor<?xi32>, tensor<2xi32>) -> tensor<?x1xi32>
    %27 = stablehlo.reshape %arg0 : (tensor<i32>) -> tensor<1xi32>
    %28 = stablehlo.concatenate %27, %c_0, dim = 0 : (tensor<1xi32>, tensor<1xi32>) -> tensor<2xi32>
    %29 = stablehlo.dynamic_broadcast_in_dim %cst, %28, dims = [] : (tensor<f32>, tensor<2xi32>) -> tensor<?x3xf32>
    %30 = "stablehlo.scatter"(%arg1, %26, %29) <{scatter_dimension_numbers = #stablehlo.scatter<update_window_dims = [1], inserted_window_dims = [0], scatter_dims_to_operand_dims = [0], index_vector_dim = 1>}> ({
    ^bb0(%arg3: tensor<f32>, %arg4: tensor<f32>):
      %50 = stablehlo.add %arg3, %arg4 : tensor<f32>
      stablehlo.return %50 : tensor<f32>
    }) : (tensor<?x3xf32>, tensor<?x1xi32>, tensor<?x3xf32>) -> tensor<?x3xf32>
    %31 = stablehlo.convert %arg0 : tensor<i32>
    %32 = stablehlo.compare LT, %c_3, %c_3, SIGNED : (tensor<i32>, tensor<i32>) -> tensor<i1>
    %33 = stablehlo.add %c_3, %31 : tensor<i32>
    %34 = stablehlo.select %32, %33, %c_3 : tensor<i1>, tensor<i32>
    %35 = stablehlo.compare LT, %c_3, %c_3, SIGNED : (tensor<i32>, tensor<i32>) -> tensor<i1>
    %36 = stablehlo.add %c_3, %c_1 : tensor<i32>
    %37 = stablehlo.select %35, %36, %c_3 : tensor<i1>, tensor<i32>
    %38 = stablehlo.dynamic_slice %arg1, %34, %37, sizes = [1, 3] : (tensor<?x3xf32>, tensor<i32>, tensor<i32>) -> tensor<1x3xf32>
    %39 = stablehlo.reshape %38 : (tensor<1x3xf32>) -> tensor<3xf32>
    %40 = stablehlo.convert %arg0 : tensor<i32>
    %41 = stablehlo.compare LT, %c, %c_3, SIGNED : (tensor<i32>, tensor<i32>) -> tensor<i1>
    %42 = stablehlo.add %c, %40 : tensor<i32>
    %43 = stablehlo.select %41, %42, %c : tensor<i1>, tensor<i32>
    %44 = stablehlo.compare LT, %c_3, %c_3, SIGNED : (tensor<i32>, tensor<i32>) -> tensor<i1>
    %45 = stablehlo.add %c_3, %c_1 : tensor<i32>
    %46 = stablehlo.select %44, %45, %c_3 : tensor<i1>, tensor<i32>
    %47 = stablehlo.dynamic_slice %arg1, %43, %46, sizes = [1, 3] : (tensor<?x3xf32>, tensor<i32>, tensor<i32>) -> tensor<1x3xf32>
    %48 = stablehlo.reshape %47 : (tensor<1x3xf32>) -> tensor<3xf32>
    %49 = call @_one_hot(%arg0, %arg2) : (tensor<i32>, tensor<?xi32>) -> tensor<?x3xf32>
    return %11, %15, %30, %39, %48, %49 : tensor<?x3xf32>, tensor<?x1xf32>, tensor<?x3xf32>, tensor<3xf32>, tensor<3xf32>, tensor<?x3xf32>
  }
  func.func private @take_along_axis(%arg0: tensor<i32> {jax.global_constant = "b"}, %arg1: tensor<?x3xf32>, %arg2: tensor<?x1xi32>) -> tensor<?x1xf32> {
    %cst = stablehlo.constant dense<0x7FC00000> : tensor<f32>
    %c = stablehlo.constant dense<true> : tensor<i1>
    %c_0 = stablehlo.constant dense<2> : tensor<i32>
    %c_1 = stablehlo.constant dense<false> : tensor<1xi1>
    %c_2 = stablehlo.constant dense<3> : tensor<i32>
    %c_3 = stablehlo.constant dense<1> : tensor<1xi32>
    %c_4 = stablehlo.constant dense<0> : tensor<i32>
    %0 = stablehlo.reshape %arg0 : (tensor<i32>) -> tensor<1xi32>
    %1 = stablehlo.concatenate %0, %c_3, dim = 0 : (tensor<1xi32>, tensor<1xi32>) -> tensor<2xi32>
    %2 = stablehlo.dynamic_broadcast_in_dim %c_4, %1, dims = [] : (tensor<i32>, tensor<2xi32>) -> tensor<?x1xi32>
    %3 = stablehlo.compare LT, %arg2, %2, SIGNED : (tensor<?x1xi32>, tensor<?x1xi32>) -> tensor<?x1xi1>
    %4 = stablehlo.reshape %arg0 : (tensor<i32>) -> tensor<1xi32>
    %5 = stablehlo.concatenate %4, %c_3, dim = 0 : (tensor<1xi32>, tensor<1xi32>) -> tensor<2xi32>
    %6 = stablehlo.dynamic_broadcast_in_dim %c_2, %5, dims = [] : (tensor<i32>, tensor<2xi32>) -> tensor<?x1xi32>
    %7 = stablehlo.add %arg2, %6 : tensor<?x1xi32>
    %8 = stablehlo.select %3, %7, %arg2 : tensor<?x1xi1>, tensor<?x1xi32>
    %9 = stablehlo.reshape %arg0 : (tensor<i32>) -> tensor<1xi32>
    %10 = stablehlo.concatenate %9, %c_3, %c_3, dim = 0 : (tensor<1xi32>, tensor<1xi32>, tensor<1xi32>) -> tensor<3xi32>
    %11 = stablehlo.dynamic_reshape %8, %10 : (tensor<?x1xi32>, tensor<3xi32>) -> tensor<?x1x1xi32>
    %12 = stablehlo.convert %arg0 : tensor<i32>
    %13 = stablehlo.broadcast_in_dim %12, dims = [] : (tensor<i32>) -> tensor<1xi32>
    %14 = stablehlo.broadcast_in_dim %c_2, dims = [] : (tensor<i32>) -> tensor<1xi32>
    %15 = stablehlo.concatenate %13, %14, dim = 0 : (tensor<1xi32>, tensor<1xi32>) -> tensor<2xi32>
    %16 = stablehlo.broadcast_in_dim %c_0, dims = [] : (tensor<i32>) -> tensor<1xi32>
    %17 = stablehlo.add %c_3, %16 : tensor<1xi32>
    %18 = stablehlo.select %c_1, %17, %c_3 : tensor<1xi1>, tensor<1xi32>
    %19 = stablehlo.broadcast_in_dim %18, dims = [0] : (tensor<1xi32>) -> tensor<1x1xi32>
    %20 = "stablehlo.gather"(%15, %19) <{dimension_numbers = #stablehlo.gather<collapsed_slice_dims = [0], start_index_map = [0], index_vector_dim = 1>, slice_sizes = array<i64: 1>}> : (tensor<2xi32>, tensor<1x1xi32>) -> tensor<1xi32>
    %21 = stablehlo.subtract %20, %c_3 : tensor<1xi32>
    %22 = stablehlo.reshape %arg0 : (tensor<i32>) -> tensor<1xi32>
    %23 = stablehlo.concatenate %22, %c_3, %c_3, dim = 0 : (tensor<1xi32>, tensor<1xi32>, tensor<1xi32>) -> tensor<3xi32>
    %24 = stablehlo.dynamic_broadcast_in_dim %c_4, %23, dims = [] : (tensor<i32>, tensor<3xi32>) -> tensor<?x1x1xi32>
    %25 = stablehlo.compare GE, %11, %24, SIGNED : (tensor<?x1x1xi32>, tensor<?x1x1xi32>) -> tensor<?x1x1xi1>
    %26 = stablehlo.broadcast_in_dim %21, dims = [2] : (tensor<1xi32>) -> tensor<1x1x1xi32>
    %27 = stablehlo.reshape %arg0 : (tensor<i32>) -> tensor<1xi32>
    %28 = stablehlo.concatenate %27, %c_3, %c_3, dim = 0 : (tensor<1xi32>, tensor<1xi32>, tensor<1xi32>) -> tensor<3xi32>
    %29 = stablehlo.dynamic_broadcast_in_dim %26, %28, dims = [0, 1, 2] : (tensor<1x1x1xi32>, tensor<3xi32>) -> tensor<?x1x1xi32>
    %30 = stablehlo.compare LE, %11, %29, SIGNED : (tensor<?x1x1xi32>, tensor<?x1x1xi32>) -> tensor<?x1x1xi1>
    %31 = stablehlo.and %25, %30 : tensor<?x1x1xi1>
    %32 = stablehlo.reduce(%31 init: %c) applies stablehlo.and across dimensions = [2] : (tensor<?x1x1xi1>, tensor<i1>) -> tensor<?x1xi1>
    %33 = "stablehlo.gather"(%arg1, %11) <{dimension_numbers = #stablehlo.gather<collapsed_slice_dims = [1], operand_batching_dims = [0], start_indices_batching_dims = [0], start_index_map = [1], index_vector_dim = 2>, slice_sizes = array<i64: 1, 1>}> : (tensor<?x3xf32>, tensor<?x1x1xi32>) -> tensor<?x1xf32>
    %34 = stablehlo.reshape %arg0 : (tensor<i32>) -> tensor<1xi32>
    %35 = stablehlo.concatenate %34, %c_3, dim = 0 : (tensor<1xi32>, tensor<1xi32>) -> tensor<2xi32>
    %36 = stablehlo.dynamic_broadcast_in_dim %cst, %35, dims = [] : (tensor<f32>, tensor<2xi32>) -> tensor<?x1xf32>
    %37 = stablehlo.select %32, %33, %36 : tensor<?x1xi1>, tensor<?x1xf32>
    return %37 : tensor<?x1xf32>
  }
  func.func private @_one_hot(%arg0: tensor<i32> {jax.global_constant = "b"}, %arg1: tensor<?xi32>) -> tensor<?x3xf32> {
    %c = stablehlo.constant dense<3> : tensor<1xi32>
    %c_0 = stablehlo.constant dense<1> : tensor<1xi32>
    %0 = stablehlo.reshape %arg0 : (tensor<i32>) -> tensor<1xi32>
    %1 = stablehlo.concatenate %0, %c_0, dim = 0 : (tensor<1xi32>, tensor<1xi32>) -> tensor<2xi32>
    %2 = stablehlo.dynamic_broadcast_in_dim %arg1, %1, dims = [0] : (tensor<?xi32>, tensor<2xi32>) -> tensor<?x1xi32>
    %3 = stablehlo.iota dim = 1 : tensor<1x3xi32>
    %4 = stablehlo.reshape %arg0 : (tensor<i32>) -> tensor<1xi32>
    %5 = stablehlo.concatenate %4, %c, dim = 0 : (tensor<1xi32>, tensor<1xi32>) -> tensor<2xi32>
    %6 = stablehlo.dynamic_broadcast_in_dim %2, %5, dims = [0, 1] : (tensor<?x1xi32>, tensor<2xi32>) -> tensor<?x3xi32>
    %7 = stablehlo.reshape %arg0 : (tensor<i32>) -> tensor<1xi32>
    %8 = stablehlo.concatenate %7, %c, dim = 0 : (tensor<1xi32>, tensor<1xi32>) -> tensor<2xi32>
    %9 = stablehlo.dynamic_broadcast_in_dim %3, %8, dims = [0, 1] : (tensor<1x3xi32>, tensor<2xi32>) -> tensor<?x3xi32>
    %10 = stablehlo.compare EQ, %6, %9, SIGNED : (tensor<?x3xi32>, tensor<?x3xi32>) -> tensor<?x3xi1>
    %11 = stablehlo.convert %10 : (tensor<?x3xi1>) -> tensor<?x3xf32>
    return %11 : tensor<?x3xf32>
  }
}
