module @jit__lambda attributes {jax.uses_shape_polymorphism = true, mhlo.num_partitions = 1 : i32, mhlo.num_replicas = 1 : i32} {
  func.func public @main(%arg0: tensor<?x?x8x1xf32>) -> (tensor<?x6xf32> {jax.result_info = "result"}) {
    %c = stablehlo.constant dense<1> : tensor<i32>
    %0 = stablehlo.get_dimension_size %arg0, dim = 0 : (tensor<?x?x8x1xf32>) -> tensor<i32>
    %1 = stablehlo.get_dimension_size %arg0, dim = 1 : (tensor<?x?x8x1xf32>) -> tensor<i32>
    %2 = stablehlo.compare GE, %0, %c, SIGNED : (tensor<i32>, tensor<i32>) -> tensor<i1>
    stablehlo.custom_call @shape_assertion(%2, %0) {api_version = 2 : i32, error_message = "Input shapes do not match the polymorphic shapes specification. Expected value >= 1 for dimension variable 'b'. Using the following polymorphic shapes specifications: args[0].shape = (b, h, 8, 1). Obtained dimension variables: 'b' = {0} from specification 'b' for dimension args[0].shape[0] (= {0}), . Please see https://docs.jax.dev/en/latest/export/shape_poly.html#shape-assertion-errors for more details.", has_side_effect = true} : (tensor<i1>, tensor<i32>) -> ()
    %3 = stablehlo.compare GE, %1, %c, SIGNED : (tensor<i32>, tensor<i32>) -> tensor<i1>
    stablehlo.custom_call @shape_assertion(%3, %0, %1) {api_version = 2 : i32, error_message = "Input shapes do not match the polymorphic shapes specification. Expected value >= 1 for dimension variable 'h'. Using the following polymorphic shapes specifications: args[0].shape = (b, h, 8, 1). Obtained dimension variables: 'b' = {0} from specification 'b' for dimension args[0].shape[0] (= {0}), 'h' = {1} from specification 'h' for dimension args[0].shape[1] (= {1}), . Please see https://docs.jax.dev/en/latest/export/shape_poly.html#shape-assertion-errors for more details.", has_side_effect = true} : (tensor<i1>, tensor<i32>, tensor<i32>) -> ()
    %4 = call @_wrapped_jax_export_main(%0, %1, %arg0) : (tensor<i32>, tensor<i32>, tensor<?x?x8x1xf32>) -> tensor<?x6xf32>
    return %4 : tensor<?x6xf32>
  }
  func.func private @_wrapped_jax_export_main(%arg0: tensor<i32> {jax.global_constant = "b"}, %arg1: tensor<i32> {jax.global_constant = "h"}, %arg2: tensor<?x?x8x1xf32>) -> (tensor<?x6xf32> {jax.result_info = "result"}) {
    %c = stablehlo.constant dense<6> : tensor<1xi32>
    %cst = stablehlo.constant dense<0.000000e+00> : tensor<f32>
    %c_0 = stablehlo.constant dense<0> : tensor<i32>
    %c_1 = stablehlo.constant dense<1> : tensor<i32>
    %c_2 = stablehlo.constant dense<2> : tensor<i32>
    %c_3 = stablehlo.constant dense<-2> : tensor<i32>
    %cst_4 = stablehlo.constant dense<0xFF800000> : tensor<f32>
    %cst_5 = stablehlo.constant dense<[[[[0.0160212032, 0.473599583, -1.33518839, 0.637417733]], [[-0.0305834692, 0.484668314, 1.6003561, -2.2808578]], [[0.260948181, -1.09911907, 0.592196703, -1.31331348]]], [[[-0.495399565, 0.202733755, 0.613509356, 0.0747940913]], [[-0.792830944, -0.553532243, 0.884502887, -0.0054996158]], [[-1.68381441, 0.843662679, 0.416248471, 0.873415529]]], [[[-0.336627454, 0.82815653, -1.06106496, 0.569999814]], [[-0.490380317, 0.674351692, 1.00564408, -0.735990167]], [[-0.0512294807, 0.0389546268, 1.18966484, 0.710558116]]]]> : tensor<3x3x1x4xf32>
    %cst_6 = stablehlo.constant dense<"0x49119CBFA14BEA3E2BBE3E3F70EC07405CEED6BF624E09BFE8ABAA3FF272ADBFED8799BF805F043F375B823FA52E2BBFC6450A3F3F86EF3D5E66C23F6206C7BAD9807D3FBB3267BFE2503DBEFC0CC6BD4ACE913F8561143FE57240BF70952E3F1748453F83A6E4BD51EC83BE5C7446BE83F5D8BFD945413E3235703E47935DBFF5103E3F61BDAFBF9B430DBFEA4FF3BEB966FE3F10B2CCBF8908103FFE2E713F3F65C13E7C45973FB55980BFC2EF11C02D4E443FE61099BFE21DA7BE6DE496BF23B3863F7C7A5D3F185638BF3E4B673F3660F83DF2BB0EBEBC2D6B3D879D4FBEFC701D3FE0E59E3E5CEDB2BEFDCC803FAA891CBFF7E8923EC024D83E8D49BD3F9B6401BF531DDF3F9664343EE2A146BE2D272CBF5317163F5370483D12438DBF9B5E90BF82360EBFBB0E2DBF078F8B3FA411B03FEC595E3F973AB73E0A42DBBECA295F3D297C623FD9610840C3B3693F2E928FBE2FC01B3D2010F7BE464B48BFEFA93CBE384F483ED3FEEA3F0020553DE9BDAD3F153DE23F0566A13D5BCCCD3F0206373F30C7D5BEADC5873E436ABB3C48EA6DBE4F8D4BBE9BAB133EFE4CDE3E9E8762BFB5CE19BC88DCC2BFFD86853E37A41F3FC7E3273E585B923E8306173F0D442ABF39C974BEC9CB023FCB3D803F2333CA3E0C622340401BBBBDBFE97F3F2224A23FF6FA08BE220D52BF885F97BFF12B263E0C1E8E3F1F188B3E2F01313E5228C2BEA59F0F3F75B108C041F36D3E2569E63C4F67AFBFFF3C0B40C296B1BF31EC89BFE2B599BF88208E3F885963BF112D2B3F1167163F85F3843EBF5EA7BF01B31CBFA228D63F7137A5BF57E754BFF42326BEF9194F3FDAD6803E9BF63D3F199D88BFE1DC713FDFAB113FB11ACCBFF91BC53FA6B612407CC144BF35F4633DBEDEB23F4899BDBFBEB3FEBF4402A6BF4A2B11BFCA1414BF1B7B1B3F997D893E767F9FBFD03F113FE6E1EF3F1339993F38B97D3F2F4CA53C44CF7B3F7B5477BF7F42403F4DAFB2BD85C1903FEF98EE3E2E818BBF9610033EAEEE9B3FBC8A90BFCB230FBFC1C744BF5471BFBFAD15763FC2CEA73FA2CF4C3F5A64783EDC1E55BD1C20753E40473BBF11D3643FB1D2853F2CBB6E3F39EC07BF7592A03D72C229BE05F0E43F4802383EB3E7F0BFEF08CC3E1AEEF03FAD672F3F9525613FFBB4133D7E56FCBF87B6E7BF377B9FBF42E001BE1FB89E3E727D303F8450AEBE51F9743F"> : tensor<3x3x4x6xf32>
    %0 = stablehlo.convolution(%arg2, %cst_5) dim_numbers = [b, 0, 1, f]x[0, 1, i, o]->[b, 0, 1, f], window = {pad = [[1, 1], [1, 1]]} {batch_group_count = 1 : i64, feature_group_count = 1 : i64} : (tensor<?x?x8x1xf32>, tensor<3x3x1x4xf32>) -> tensor<?x?x8x4xf32>
    %1 = call @relu(%arg0, %arg1, %0) : (tensor<i32>, tensor<i32>, tensor<?x?x8x4xf32>) -> tensor<?x?x8x4xf32>
    %2 = stablehlo.broadcast_in_dim %cst_4, dims = [] : (tensor<f32>) -> tensor<f32>
    %3 = "stablehlo.reduce_window"(%1, %2) <{window_dimensions = array<i64: 1, 2, 2, 1>, window_strides = array<i64: 1, 2, 2, 1>}> ({
    ^bb0(%arg3: tensor<f32>, %arg4: tensor<f32>):
      %18 = stablehlo.maximum %arg3, %arg4 : tensor<f32>
      stablehlo.return %18 : tensor<f32>
    }) : (tensor<?x?x8x4xf32>, tensor<f32>) -> tensor<?x?x4x4xf32>
    %4 = stablehlo.convolution(%3, %cst_6) dim_numbers = [b, 0, 1, f]x[0, 1, i, o]->[b, 0, 1, f], window = {stride = [2, 2]} {batch_group_count = 1 : i64, feature_group_count = 1 : i64} : (tensor<?x?x4x4xf32>, tensor<3x3x4x6xf32>) -> tensor<?x?x1x6xf32>
    %5 = stablehlo.convert %arg1 : tensor<i32>
    %6 = stablehlo.add %5, %c_3 : tensor<i32>
    %7:2 = call @divmod(%arg0, %arg1, %6, %c_2) : (tensor<i32>, tensor<i32>, tensor<i32>, tensor<i32>) -> (tensor<i32>, tensor<i32>)
    %8 = stablehlo.add %7#0, %c_3 : tensor<i32>
    %9:2 = call @divmod(%arg0, %arg1, %8, %c_2) : (tensor<i32>, tensor<i32>, tensor<i32>, tensor<i32>) -> (tensor<i32>, tensor<i32>)
    %10 = stablehlo.add %9#0, %c_1 : tensor<i32>
    %11 = stablehlo.maximum %10, %c_0 : tensor<i32>
    %12 = stablehlo.convert %11 : (tensor<i32>) -> tensor<f32>
    %13 = stablehlo.reduce(%4 init: %cst) applies stablehlo.add across dimensions = [1, 2] : (tensor<?x?x1x6xf32>, tensor<f32>) -> tensor<?x6xf32>
    %14 = stablehlo.reshape %arg0 : (tensor<i32>) -> tensor<1xi32>
    %15 = stablehlo.concatenate %14, %c, dim = 0 : (tensor<1xi32>, tensor<1xi32>) -> tensor<2xi32>
    %16 = stablehlo.dynamic_broadcast_in_dim %12, %15, dims = [] : (tensor<f32>, tensor<2xi32>) -> tensor<?x6xf32>
    %17 = stablehlo.divide %13, %16 : tensor<?x6xf32>
    return %17 : tensor<?x6xf32>
  }
  func.func private @relu(%arg0: tensor<i32> {jax.global_constant = "b"}, %arg1: tensor<i32> {jax.global_constant = "h"}, %arg2: tensor<?x?x8x4xf32>) -> tensor<?x?x8x4xf32> {
    %c = stablehlo.constant dense<4> : tensor<1xi32>
    %c_0 = stablehlo.constant dense<8> : tensor<1xi32>
    %cst = stablehlo.constant dense<0.000000e+00> : tensor<f32>
    %0 = stablehlo.reshape %arg0 : (tensor<i32>) -> tensor<1xi32>
    %1 = stablehlo.reshape %arg1 : (tensor<i32>) -> tensor<1xi32>
    %2 = stablehlo.concatenate %0, %1, %c_0, %c, dim = 0 : (tensor<1xi32>, tensor<1xi32>, tensor<1xi32>, tensor<1xi32>) -> tensor<4xi32>
    %3 = stablehlo.dynamic_broadcast_in_dim %cst, %2, dims = [] : (tensor<f32>, tensor<4xi32>) -> tensor<?x?x8x4xf32>
    %4 = stablehlo.maximum %arg2, %3 : tensor<?x?x8x4xf32>
    return %4 : tensor<?x?x8x4xf32>
  }
  func.func private @divmod(%arg0: tensor<i32> {jax.global_constant = "b"}, %arg1: tensor<i32> {jax.global_constant = "h"}, %arg2: tensor<i32>, %arg3: tensor<i32>) -> (tensor<i32>, tensor<i32>) {
    %0 = call @floor_divide(%arg0, %arg1, %arg2, %arg3) : (tensor<i32>, tensor<i32>, tensor<i32>, tensor<i32>) -> tensor<i32>
    %1 = call @remainder(%arg0, %arg1, %arg2, %arg3) : (tensor<i32>, tensor<i32>, tensor<i32>, tensor<i32>) -> tensor<i32>
    return %0, %1 : tensor<i32>, tensor<i32>
  }
  func.func private @floor_divide(%arg0: tensor<i32> {jax.global_constant = "b"}, %arg1: tensor<i32> {jax.global_constant = "h"}, %arg2: tensor<i32>, %arg3: tensor<i32>) -> tensor<i32> {
    %c = stablehlo.constant dense<1> : tensor<i32>
    %c_0 = stablehlo.constant dense<0> : tensor<i32>
    %0 = stablehlo.divide %arg2, %arg3 : tensor<i32>
    %1 = stablehlo.sign %arg2 : tensor<i32>
    %2 = stablehlo.sign %arg3 : tensor<i32>
    %3 = stablehlo.compare NE, %1, %2, SIGNED : (tensor<i32>, tensor<i32>) -> tensor<i1>
    %4 = stablehlo.remainder %arg2, %arg3 : tensor<i32>
    %5 = stablehlo.compare NE, %4, %c_0, SIGNED : (tensor<i32>, tensor<i32>) -> tensor<i1>
    %6 = stablehlo.and %3, %5 : tensor<i1>
    %7 = stablehlo.subtract %0, %c : tensor<i32>
    %8 = call @_where(%arg0, %arg1, %6, %7, %0) : (tensor<i32>, tensor<i32>, tensor<i1>, tensor<i32>, tensor<i32>) -> tensor<i32>
    return %8 : tensor<i32>
  }
  func.func private @_where(%arg0: tensor<i32> {jax.global_constant = "b"}, %arg1: tensor<i32> {jax.global_constant = "h"}, %arg2: tensor<i1>, %arg3: tensor<i32>, %arg4: tensor<i32>) -> tensor<i32> {
    %0 = stablehlo.select %arg2, %arg3, %arg4 : tensor<i1>, tensor<i32>
    return %0 : tensor<i32>
  }
  func.func private @remainder(%arg0: tensor<i32> {jax.global_constant = "b"}, %arg1: tensor<i32> {jax.global_constant = "h"}, %arg2: tensor<i32>, %arg3: tensor<i32>) -> tensor<i32> {
    %c = stablehlo.constant dense<1> : tensor<i32>
    %c_0 = stablehlo.constant dense<0> : tensor<i32>
    %0 = stablehlo.compare EQ, %arg3, %c_0, SIGNED : (tensor<i32>, tensor<i32>) -> tensor<i1>
    %1 = call @_where(%arg0, %arg1, %0, %c, %arg3) : (tensor<i32>, tensor<i32>, tensor<i1>, tensor<i32>, tensor<i32>) -> tensor<i32>
    %2 = stablehlo.remainder %arg2, %1 : tensor<i32>
    %3 = stablehlo.compare NE, %2, %c_0, SIGNED : (tensor<i32>, tensor<i32>) -> tensor<i1>
    %4 = stablehlo.compare LT, %2, %c_0, SIGNED : (tensor<i32>, tensor<i32>) -> tensor<i1>
    %5 = stablehlo.compare LT, %1, %c_0, SIGNED : (tensor<i32>, tensor<i32>) -> tensor<i1>
    %6 = stablehlo.compare NE, %4, %5, UNSIGNED : (tensor<i1>, tensor<i1>) -> tensor<i1>
    %7 = stablehlo.and %6, %3 : tensor<i1>
    %8 = stablehlo.add %2, %1 : tensor<i32>
    %9 = stablehlo.select %7, %8, %2 : tensor<i1>, tensor<i32>
    return %9 : tensor<i32>
  }
}
