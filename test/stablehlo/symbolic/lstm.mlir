module @jit__lambda attributes {jax.uses_shape_polymorphism = true, mhlo.num_partitions = 1 : i32, mhlo.num_replicas = 1 : i32} {
  func.func public @main(%arg0: tensor<?x3xf32>) -> (tensor<5xf32> {jax.result_info = "result[0][0]"}, tensor<5xf32> {jax.result_info = "result[0][1]"}, tensor<?x5xf32> {jax.result_info = "result[1]"}) {
    %c = stablehlo.constant dense<1> : tensor<i32>
    %0 = stablehlo.get_dimension_size %arg0, dim = 0 : (tensor<?x3xf32>) -> tensor<i32>
    %1 = stablehlo.compare GE, %0, %c, SIGNED : (tensor<i32>, tensor<i32>) -> tensor<i1>
    stablehlo.custom_call @shape_assertion(%1, %0) {api_version = 2 : i32, error_message = "Input shapes do not match the polymorphic shapes specification. Expected value >= 1 for dimension variable 'b'. Using the following polymorphic shapes specifications: args[0].shape = (b, 3). Obtained dimension variables: 'b' = {0} from specification 'b' for dimension args[0].shape[0] (= {0}), . Please see https://docs.jax.dev/en/latest/export/shape_poly.html#shape-assertion-errors for more details.", has_side_effect = true} : (tensor<i1>, tensor<i32>) -> ()
    %2:3 = call @_wrapped_jax_export_main(%0, %arg0) : (tensor<i32>, tensor<?x3xf32>) -> (tensor<5xf32>, tensor<5xf32>, tensor<?x5xf32>)
    return %2#0, %2#1, %2#2 : tensor<5xf32>, tensor<5xf32>, tensor<?x5xf32>
  }
  func.func private @_wrapped_jax_export_main(%arg0: tensor<i32> {jax.global_constant = "b"}, %arg1: tensor<?x3xf32>) -> (tensor<5xf32> {jax.result_info = "result[0][0]"}, tensor<5xf32> {jax.result_info = "result[0][1]"}, tensor<?x5xf32> {jax.result_info = "result[1]"}) {
    %c = stablehlo.constant dense<1> : tensor<i32>
    %c_0 = stablehlo.constant dense<0> : tensor<i32>
    %c_1 = stablehlo.constant dense<5> : tensor<1xi32>
    %cst = stablehlo.constant dense<[[-0.248536348, -0.109336622, -0.403747767, 0.735356092, -0.568552196, -0.364514858, 0.037642587, 0.728849112, -0.221162617, 1.51659727, -0.9077183, 1.2865144, -0.857821524, -0.163066477, 0.364046186, 2.05483985, 0.89582616, -0.405862838, 1.29911911, -0.213704899], [-0.791445851, 0.448684692, 0.0944708511, 0.953666388, -0.549738348, 0.381503493, 0.634549319, 0.278045565, -0.0289835315, -0.697618365, 0.90375179, 0.137224495, 0.496303976, -0.350778252, 0.0130116912, -1.03722799, 0.0855252966, 0.76521033, 0.0929932892, 0.859392821], [0.312910467, 1.36385667, -0.190049633, -1.63863027, 0.432488233, -0.16518949, -0.97429341, 0.651265383, 0.264329135, 0.445338607, -0.332375944, 0.197047159, 0.254339039, 1.7746551, -0.683959782, -1.049420e-02, 0.363859802, -1.72478688, -1.60296834, 2.16581845]]> : tensor<3x20xf32>
    %cst_2 = stablehlo.constant dense<[[-1.76711893, 0.574929118, -0.848225414, -0.763160109, -1.98252487, -0.900738596, 0.784378588, -1.3887428, 0.595426857, 0.313297749, 2.0183022, -0.474533588, 1.26341403, 0.888868927, -0.28666842, -1.662956, 1.50944042, -1.36438894, -0.473415941, 0.883176565], [1.11595559, -0.845446705, -0.0320016854, -0.258578449, 1.18155861, 2.50463343, -1.82988679, 0.916422903, -2.85817528, 0.0140663721, -1.10878456, 1.99181879, 0.166368529, -0.736771762, -0.499312848, -0.575295746, 0.188311607, -0.158148468, 0.655885577, 1.54026103], [7.014120e-01, -1.22600305, -1.62380683, -0.755419552, 1.05321527, -0.335048139, -0.667572796, 0.138282552, -1.41552591, -1.13932776, 0.510325432, -0.303153485, -0.453236252, 0.31763503, -0.584871233, -0.686291038, -0.459810168, 0.602620601, 0.0598199367, -1.1945976], [-0.303056926, 0.648223936, 1.87075198, -1.14235401, 0.338535309, -0.258748263, 0.825519442, 0.44955498, 1.47217691, 0.519450903, -0.545113325, -0.538593173, 0.405550122, 0.394943178, 2.3979373, 1.67633271, -1.17357838, 0.350224793, -1.33098888, -1.65567684], [7.435460e-01, 0.551747561, -1.03856778, 1.64368677, -0.977569937, -1.16772842, 0.652618229, 0.220938548, -1.605080e-01, -0.067065835, 0.223800793, -0.139579982, -0.172504872, -1.89595664, -1.34196138, 0.610949575, -0.70430088, 0.545193255, 1.23546386, -0.354950815]]> : tensor<5x20xf32>
    %cst_3 = stablehlo.constant dense<[0.282969773, 2.07647634, 0.694935619, 1.84187388, 1.53340709, 0.753360331, -0.111893758, -0.84199351, -1.11169803, 0.48632893, 0.468183368, -0.174622208, 0.848466396, -0.604537129, 1.11021912, 0.040007066, -0.036326576, -2.732970e-04, -0.0985912755, 2.48826432]> : tensor<20xf32>
    %cst_4 = stablehlo.constant dense<0.000000e+00> : tensor<f32>
    %0 = stablehlo.broadcast_in_dim %cst_4, dims = [] : (tensor<f32>) -> tensor<5xf32>
    %1 = stablehlo.broadcast_in_dim %cst_4, dims = [] : (tensor<f32>) -> tensor<5xf32>
    %2 = stablehlo.reshape %arg0 : (tensor<i32>) -> tensor<1xi32>
    %3 = stablehlo.concatenate %2, %c_1, dim = 0 : (tensor<1xi32>, tensor<1xi32>) -> tensor<2xi32>
    %4 = stablehlo.dynamic_broadcast_in_dim %cst_4, %3, dims = [] : (tensor<f32>, tensor<2xi32>) -> tensor<?x5xf32>
    %5:8 = stablehlo.while(%iterArg = %arg1, %iterArg_5 = %cst, %iterArg_6 = %cst_2, %iterArg_7 = %cst_3, %iterArg_8 = %c_0, %iterArg_9 = %0, %iterArg_10 = %1, %iterArg_11 = %4) : tensor<?x3xf32>, tensor<3x20xf32>, tensor<5x20xf32>, tensor<20xf32>, tensor<i32>, tensor<5xf32>, tensor<5xf32>, tensor<?x5xf32>
    cond {
      %6 = stablehlo.compare LT, %iterArg_8, %arg0, SIGNED : (tensor<i32>, tensor<i32>) -> tensor<i1>
      stablehlo.return %6 : tensor<i1>
    } do {
      %6 = func.call @dynamic_index_in_dim(%arg0, %iterArg, %iterArg_8) : (tensor<i32>, tensor<?x3xf32>, tensor<i32>) -> tensor<3xf32>
      %7:3 = func.call @closed_call(%arg0, %iterArg_5, %iterArg_6, %iterArg_7, %iterArg_9, %iterArg_10, %6) : (tensor<i32>, tensor<3x20xf32>, tensor<5x20xf32>, tensor<20xf32>, tensor<5xf32>, tensor<5xf32>, tensor<3xf32>) -> (tensor<5xf32>, tensor<5xf32>, tensor<5xf32>)
      %8 = func.call @dynamic_update_index_in_dim(%arg0, %iterArg_11, %7#2, %iterArg_8) : (tensor<i32>, tensor<?x5xf32>, tensor<5xf32>, tensor<i32>) -> tensor<?x5xf32>
      %9 = stablehlo.add %iterArg_8, %c : tensor<i32>
      stablehlo.return %iterArg, %iterArg_5, %iterArg_6, %iterArg_7, %9, %7#0, %7#1, %8 : tensor<?x3xf32>, tensor<3x20xf32>, tensor<5x20xf32>, tensor<20xf32>, tensor<i32>, tensor<5xf32>, tensor<5xf32>, tensor<?x5xf32>
    }
    return %5#5, %5#6, %5#7 : tensor<5xf32>, tensor<5xf32>, tensor<?x5xf32>
  }
  func.func private @dynamic_index_in_dim(%arg0: tensor<i32> {jax.global_constant = "b"}, %arg1: tensor<?x3xf32>, %arg2: tensor<i32>) -> tensor<3xf32> {
    %c = stablehlo.constant dense<0> : tensor<i32>
    %0 = stablehlo.dynamic_slice %arg1, %arg2, %c, sizes = [1, 3] : (tensor<?x3xf32>, tensor<i32>, tensor<i32>) -> tensor<1x3xf32>
    %1 = stablehlo.reshape %0 : (tensor<1x3xf32>) -> tensor<3xf32>
    return %1 : tensor<3xf32>
  }
  func.func private @closed_call(%arg0: tensor<i32> {jax.global_constant = "b"}, %arg1: tensor<3x20xf32>, %arg2: tensor<5x20xf32>, %arg3: tensor<20xf32>, %arg4: tensor<5xf32>, %arg5: tensor<5xf32>, %arg6: tensor<3xf32>) -> (tensor<5xf32>, tensor<5xf32>, tensor<5xf32>) {
    %cst = stablehlo.constant dense<1.000000e+00> : tensor<f32>
    %0 = stablehlo.dot_general %arg6, %arg1, contracting_dims = [0] x [0] : (tensor<3xf32>, tensor<3x20xf32>) -> tensor<20xf32>
    %1 = stablehlo.dot_general %arg4, %arg2, contracting_dims = [0] x [0] : (tensor<5xf32>, tensor<5x20xf32>) -> tensor<20xf32>
    %2 = stablehlo.add %0, %1 : tensor<20xf32>
    %3 = stablehlo.add %2, %arg3 : tensor<20xf32>
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
    %14 = stablehlo.multiply %13, %arg5 : tensor<5xf32>
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
  func.func private @dynamic_update_index_in_dim(%arg0: tensor<i32> {jax.global_constant = "b"}, %arg1: tensor<?x5xf32>, %arg2: tensor<5xf32>, %arg3: tensor<i32>) -> tensor<?x5xf32> {
    %c = stablehlo.constant dense<0> : tensor<i32>
    %0 = stablehlo.broadcast_in_dim %arg2, dims = [1] : (tensor<5xf32>) -> tensor<1x5xf32>
    %1 = stablehlo.dynamic_update_slice %arg1, %0, %arg3, %c : (tensor<?x5xf32>, tensor<1x5xf32>, tensor<i32>, tensor<i32>) -> tensor<?x5xf32>
    return %1 : tensor<?x5xf32>
  }
}
