module @jit__lambda attributes {jax.uses_shape_polymorphism = true, mhlo.num_partitions = 1 : i32, mhlo.num_replicas = 1 : i32} {
  func.func public @main(%arg0: tensor<?x3xf32>, %arg1: tensor<?x3xf32>) -> (tensor<?x3xf32> {jax.result_info = "result[0]"}, tensor<?xf32> {jax.result_info = "result[1]"}, tensor<?xi32> {jax.result_info = "result[2]"}, tensor<?x4xf32> {jax.result_info = "result[3]"}, tensor<?x3xf32> {jax.result_info = "result[4]"}, tensor<?x2xf32> {jax.result_info = "result[5]"}, tensor<2x?x3xf32> {jax.result_info = "result[6]"}, tensor<3x?xf32> {jax.result_info = "result[7]"}, tensor<?x2xf32> {jax.result_info = "result[8]"}, tensor<?xi32> {jax.result_info = "result[9]"}) {
    %c = stablehlo.constant dense<2> : tensor<i32>
    %c_0 = stablehlo.constant dense<1> : tensor<i32>
    %0 = stablehlo.get_dimension_size %arg0, dim = 0 : (tensor<?x3xf32>) -> tensor<i32>
    %1 = stablehlo.get_dimension_size %arg1, dim = 0 : (tensor<?x3xf32>) -> tensor<i32>
    %2 = stablehlo.compare GE, %0, %c_0, SIGNED : (tensor<i32>, tensor<i32>) -> tensor<i1>
    stablehlo.custom_call @shape_assertion(%2, %0) {api_version = 2 : i32, error_message = "Input shapes do not match the polymorphic shapes specification. Expected value >= 1 for dimension variable 'b'. Using the following polymorphic shapes specifications: args[0].shape = (b, 3),args[1].shape = (2*b, 3). Obtained dimension variables: 'b' = {0} from specification 'b' for dimension args[0].shape[0] (= {0}), . Please see https://docs.jax.dev/en/latest/export/shape_poly.html#shape-assertion-errors for more details.", has_side_effect = true} : (tensor<i1>, tensor<i32>) -> ()
    %3 = stablehlo.convert %0 : tensor<i32>
    %4 = stablehlo.multiply %3, %c : tensor<i32>
    %5 = stablehlo.compare EQ, %1, %4, SIGNED : (tensor<i32>, tensor<i32>) -> tensor<i1>
    %6 = stablehlo.convert %0 : tensor<i32>
    %7 = stablehlo.multiply %6, %c : tensor<i32>
    stablehlo.custom_call @shape_assertion(%5, %1, %7, %0) {api_version = 2 : i32, error_message = "Input shapes do not match the polymorphic shapes specification. Found inconsistency between dimension size args[1].shape[0] (= {0}) and the specification '2*b' (= {1}). Using the following polymorphic shapes specifications: args[0].shape = (b, 3),args[1].shape = (2*b, 3). Obtained dimension variables: 'b' = {2} from specification 'b' for dimension args[0].shape[0] (= {2}), . Please see https://docs.jax.dev/en/latest/export/shape_poly.html#shape-assertion-errors for more details.", has_side_effect = true} : (tensor<i1>, tensor<i32>, tensor<i32>, tensor<i32>) -> ()
    %8:10 = call @_wrapped_jax_export_main(%0, %arg0, %arg1) : (tensor<i32>, tensor<?x3xf32>, tensor<?x3xf32>) -> (tensor<?x3xf32>, tensor<?xf32>, tensor<?xi32>, tensor<?x4xf32>, tensor<?x3xf32>, tensor<?x2xf32>, tensor<2x?x3xf32>, tensor<3x?xf32>, tensor<?x2xf32>, tensor<?xi32>)
    return %8#0, %8#1, %8#2, %8#3, %8#4, %8#5, %8#6, %8#7, %8#8, %8#9 : tensor<?x3xf32>, tensor<?xf32>, tensor<?xi32>, tensor<?x4xf32>, tensor<?x3xf32>, tensor<?x2xf32>, tensor<2x?x3xf32>, tensor<3x?xf32>, tensor<?x2xf32>, tensor<?xi32>
  }
  func.func private @_wrapped_jax_export_main(%arg0: tensor<i32> {jax.global_constant = "b"}, %arg1: tensor<?x3xf32>, %arg2: tensor<?x3xf32>) -> (tensor<?x3xf32> {jax.result_info = "result[0]"}, tensor<?xf32> {jax.result_info = "result[1]"}, tensor<?xi32> {jax.result_info = "result[2]"}, tensor<?x4xf32> {jax.result_info = "result[3]"}, tensor<?x3xf32> {jax.result_info = "result[4]"}, tensor<?x2xf32> {jax.result_info = "result[5]"}, tensor<2x?x3xf32> {jax.result_info = "result[6]"}, tensor<3x?xf32> {jax.result_info = "result[7]"}, tensor<?x2xf32> {jax.result_info = "result[8]"}, tensor<?xi32> {jax.result_info = "result[9]"}) {
    %cst = stablehlo.constant dense<1.000000e+00> : tensor<f32>
    %c = stablehlo.constant dense<3> : tensor<1xi32>
    %c_0 = stablehlo.constant dense<2> : tensor<1xi32>
    %c_1 = stablehlo.constant dense<1> : tensor<1xi32>
    %c_2 = stablehlo.constant dense<-1> : tensor<i32>
    %c_3 = stablehlo.constant dense<2> : tensor<i32>
    %c_4 = stablehlo.constant dense<0> : tensor<i32>
    %c_5 = stablehlo.constant dense<1> : tensor<i32>
    %c_6 = stablehlo.constant dense<3> : tensor<i32>
    %0 = stablehlo.concatenate %arg1, %arg2, dim = 0 : (tensor<?x3xf32>, tensor<?x3xf32>) -> tensor<?x3xf32>
    %1 = stablehlo.convert %arg0 : tensor<i32>
    %2 = stablehlo.multiply %1, %c_6 : tensor<i32>
    %3 = stablehlo.reshape %2 : (tensor<i32>) -> tensor<1xi32>
    %4 = stablehlo.dynamic_reshape %arg1, %3 : (tensor<?x3xf32>, tensor<1xi32>) -> tensor<?xf32>
    %5 = stablehlo.reshape %arg0 : (tensor<i32>) -> tensor<1xi32>
    %6 = stablehlo.dynamic_iota %5, dim = 0 : (tensor<1xi32>) -> tensor<?xi32>
    %7 = stablehlo.reshape %arg0 : (tensor<i32>) -> tensor<1xi32>
    %8 = stablehlo.dynamic_broadcast_in_dim %c_5, %7, dims = [] : (tensor<i32>, tensor<1xi32>) -> tensor<?xi32>
    %9 = stablehlo.multiply %8, %6 : tensor<?xi32>
    %10 = stablehlo.reshape %arg0 : (tensor<i32>) -> tensor<1xi32>
    %11 = stablehlo.dynamic_broadcast_in_dim %c_4, %10, dims = [] : (tensor<i32>, tensor<1xi32>) -> tensor<?xi32>
    %12 = stablehlo.add %11, %9 : tensor<?xi32>
    %13 = stablehlo.reshape %arg0 : (tensor<i32>) -> tensor<1xi32>
    %14 = stablehlo.dynamic_broadcast_in_dim %c_3, %13, dims = [] : (tensor<i32>, tensor<1xi32>) -> tensor<?xi32>
    %15 = stablehlo.multiply %12, %14 : tensor<?xi32>
    %16 = call @_pad(%arg0, %arg1, %c_4) : (tensor<i32>, tensor<?x3xf32>, tensor<i32>) -> tensor<?x4xf32>
    %17 = stablehlo.convert %arg0 : tensor<i32>
    %18 = stablehlo.add %17, %c_2 : tensor<i32>
    %19 = stablehlo.convert %18 : tensor<i32>
    %20 = stablehlo.reshape %arg0 : (tensor<i32>) -> tensor<1xi32>
    %21 = stablehlo.dynamic_iota %20, dim = 0 : (tensor<1xi32>) -> tensor<?xi32>
    %22 = stablehlo.reshape %arg0 : (tensor<i32>) -> tensor<1xi32>
    %23 = stablehlo.dynamic_broadcast_in_dim %c_2, %22, dims = [] : (tensor<i32>, tensor<1xi32>) -> tensor<?xi32>
    %24 = stablehlo.multiply %23, %21 : tensor<?xi32>
    %25 = stablehlo.reshape %arg0 : (tensor<i32>) -> tensor<1xi32>
    %26 = stablehlo.dynamic_broadcast_in_dim %19, %25, dims = [] : (tensor<i32>, tensor<1xi32>) -> tensor<?xi32>
    %27 = stablehlo.add %26, %24 : tensor<?xi32>
    %28 = stablehlo.reverse %27, dims = [0] : tensor<?xi32>
    %29 = stablehlo.reshape %arg0 : (tensor<i32>) -> tensor<1xi32>
    %30 = stablehlo.concatenate %29, %c_1, dim = 0 : (tensor<1xi32>, tensor<1xi32>) -> tensor<2xi32>
    %31 = stablehlo.dynamic_broadcast_in_dim %28, %30, dims = [0] : (tensor<?xi32>, tensor<2xi32>) -> tensor<?x1xi32>
    %32 = "stablehlo.gather"(%arg1, %31) <{dimension_numbers = #stablehlo.gather<offset_dims = [1], collapsed_slice_dims = [0], start_index_map = [0], index_vector_dim = 1>, indices_are_sorted = true, slice_sizes = array<i64: 1, 3>}> : (tensor<?x3xf32>, tensor<?x1xi32>) -> tensor<?x3xf32>
    %33 = stablehlo.reverse %32, dims = [0] : tensor<?x3xf32>
    %34 = stablehlo.broadcast_in_dim %c_5, dims = [] : (tensor<i32>) -> tensor<1xi32>
    %35 = stablehlo.reshape %arg0 : (tensor<i32>) -> tensor<1xi32>
    %36 = stablehlo.concatenate %35, %c_0, dim = 0 : (tensor<1xi32>, tensor<1xi32>) -> tensor<2xi32>
    %37 = "stablehlo.dynamic_gather"(%arg1, %34, %36) <{dimension_numbers = #stablehlo.gather<offset_dims = [0, 1], start_index_map = [1]>, indices_are_sorted = true}> : (tensor<?x3xf32>, tensor<1xi32>, tensor<2xi32>) -> tensor<?x2xf32>
    %38 = stablehlo.reshape %arg0 : (tensor<i32>) -> tensor<1xi32>
    %39 = stablehlo.concatenate %c_1, %38, %c, dim = 0 : (tensor<1xi32>, tensor<1xi32>, tensor<1xi32>) -> tensor<3xi32>
    %40 = stablehlo.dynamic_broadcast_in_dim %arg1, %39, dims = [1, 2] : (tensor<?x3xf32>, tensor<3xi32>) -> tensor<1x?x3xf32>
    %41 = stablehlo.reshape %arg0 : (tensor<i32>) -> tensor<1xi32>
    %42 = stablehlo.concatenate %c_0, %41, %c, dim = 0 : (tensor<1xi32>, tensor<1xi32>, tensor<1xi32>) -> tensor<3xi32>
    %43 = stablehlo.dynamic_broadcast_in_dim %40, %42, dims = [0, 1, 2] : (tensor<1x?x3xf32>, tensor<3xi32>) -> tensor<2x?x3xf32>
    %44 = stablehlo.transpose %arg1, dims = [1, 0] : (tensor<?x3xf32>) -> tensor<3x?xf32>
    %45 = stablehlo.reshape %arg0 : (tensor<i32>) -> tensor<1xi32>
    %46 = stablehlo.concatenate %45, %c_0, dim = 0 : (tensor<1xi32>, tensor<1xi32>) -> tensor<2xi32>
    %47 = stablehlo.dynamic_broadcast_in_dim %cst, %46, dims = [] : (tensor<f32>, tensor<2xi32>) -> tensor<?x2xf32>
    %48 = stablehlo.convert %arg0 : (tensor<i32>) -> tensor<f32>
    %49 = stablehlo.reshape %arg0 : (tensor<i32>) -> tensor<1xi32>
    %50 = stablehlo.concatenate %49, %c_0, dim = 0 : (tensor<1xi32>, tensor<1xi32>) -> tensor<2xi32>
    %51 = stablehlo.dynamic_broadcast_in_dim %48, %50, dims = [] : (tensor<f32>, tensor<2xi32>) -> tensor<?x2xf32>
    %52 = stablehlo.multiply %47, %51 : tensor<?x2xf32>
    %53 = stablehlo.convert %arg0 : tensor<i32>
    %54 = stablehlo.multiply %53, %c_3 : tensor<i32>
    %55 = stablehlo.add %54, %c_5 : tensor<i32>
    %56 = stablehlo.reshape %55 : (tensor<i32>) -> tensor<1xi32>
    %57 = stablehlo.dynamic_broadcast_in_dim %c_6, %56, dims = [] : (tensor<i32>, tensor<1xi32>) -> tensor<?xi32>
    return %0, %4, %15, %16, %33, %37, %43, %44, %52, %57 : tensor<?x3xf32>, tensor<?xf32>, tensor<?xi32>, tensor<?x4xf32>, tensor<?x3xf32>, tensor<?x2xf32>, tensor<2x?x3xf32>, tensor<3x?xf32>, tensor<?x2xf32>, tensor<?xi32>
  }
  func.func private @_pad(%arg0: tensor<i32> {jax.global_constant = "b"}, %arg1: tensor<?x3xf32>, %arg2: tensor<i32>) -> tensor<?x4xf32> {
    %0 = stablehlo.convert %arg2 : (tensor<i32>) -> tensor<f32>
    %1 = stablehlo.pad %arg1, %0, low = [1, 0], high = [2, 1], interior = [0, 0] : (tensor<?x3xf32>, tensor<f32>) -> tensor<?x4xf32>
    return %1 : tensor<?x4xf32>
  }
}
