module @jit__lambda attributes {jax.uses_shape_polymorphism = false, mhlo.num_partitions = 1 : i32, mhlo.num_replicas = 1 : i32} {
  func.func public @main(%arg0: tensor<6xf32>) -> (tensor<6xf32> {jax.result_info = "result[0]"}, tensor<6xf32> {jax.result_info = "result[1]"}, tensor<6xf32> {jax.result_info = "result[2]"}, tensor<6xf32> {jax.result_info = "result[3]"}, tensor<6xf32> {jax.result_info = "result[4]"}, tensor<6xf32> {jax.result_info = "result[5]"}, tensor<6xf32> {jax.result_info = "result[6]"}, tensor<6xf32> {jax.result_info = "result[7]"}, tensor<6xf32> {jax.result_info = "result[8]"}, tensor<6xf32> {jax.result_info = "result[9]"}, tensor<6xf32> {jax.result_info = "result[10]"}, tensor<6xf32> {jax.result_info = "result[11]"}, tensor<6xf32> {jax.result_info = "result[12]"}, tensor<6xf32> {jax.result_info = "result[13]"}, tensor<6xf32> {jax.result_info = "result[14]"}, tensor<6xf32> {jax.result_info = "result[15]"}, tensor<6xi1> {jax.result_info = "result[16]"}, tensor<6xi1> {jax.result_info = "result[17]"}, tensor<6xf32> {jax.result_info = "result[18]"}, tensor<6xf32> {jax.result_info = "result[19]"}, tensor<6xf32> {jax.result_info = "result[20]"}, tensor<6xf32> {jax.result_info = "result[21]"}, tensor<6xf32> {jax.result_info = "result[22]"}, tensor<6xf32> {jax.result_info = "result[23]"}, tensor<6xi32> {jax.result_info = "result[24]"}, tensor<6xbf16> {jax.result_info = "result[25]"}, tensor<6xf32> {jax.result_info = "result[26]"}, tensor<6xf32> {jax.result_info = "result[27]"}, tensor<6xf32> {jax.result_info = "result[28]"}) {
    %cst = stablehlo.constant dense<1.000000e+00> : tensor<6xf32>
    %cst_0 = stablehlo.constant dense<3.000000e-01> : tensor<f32>
    %cst_1 = stablehlo.constant dense<5.000000e-01> : tensor<f32>
    %cst_2 = stablehlo.constant dense<1.000000e-01> : tensor<f32>
    %cst_3 = stablehlo.constant dense<1.000000e+00> : tensor<bf16>
    %cst_4 = stablehlo.constant dense<2.500000e+00> : tensor<f32>
    %cst_5 = stablehlo.constant dense<2.000000e+00> : tensor<f32>
    %0 = stablehlo.exponential %arg0 : tensor<6xf32>
    %1 = stablehlo.exponential_minus_one %arg0 : tensor<6xf32>
    %2 = stablehlo.log_plus_one %arg0 : tensor<6xf32>
    %3 = stablehlo.sine %arg0 : tensor<6xf32>
    %4 = stablehlo.cosine %arg0 : tensor<6xf32>
    %5 = stablehlo.tan %arg0 : tensor<6xf32>
    %6 = stablehlo.tanh %arg0 : tensor<6xf32>
    %7 = stablehlo.atan2 %arg0, %cst : tensor<6xf32>
    %8 = stablehlo.sqrt %arg0 : tensor<6xf32>
    %9 = stablehlo.rsqrt %arg0 : tensor<6xf32>
    %10 = stablehlo.cbrt %arg0 : tensor<6xf32>
    %11 = stablehlo.floor %arg0 : tensor<6xf32>
    %12 = stablehlo.ceil %arg0 : tensor<6xf32>
    %13 = call @round(%arg0) : (tensor<6xf32>) -> tensor<6xf32>
    %14 = stablehlo.sign %arg0 : tensor<6xf32>
    %15 = stablehlo.abs %arg0 : tensor<6xf32>
    %16 = stablehlo.compare NE, %arg0, %arg0, FLOAT : (tensor<6xf32>, tensor<6xf32>) -> tensor<6xi1>
    %17 = stablehlo.is_finite %arg0 : (tensor<6xf32>) -> tensor<6xi1>
    %18 = stablehlo.composite "chlo.erf" %arg0 {decomposition = @chlo.erf.impl, version = 1 : i32} : (tensor<6xf32>) -> tensor<6xf32>
    %19 = stablehlo.composite "chlo.sinh" %arg0 {decomposition = @chlo.sinh.impl, version = 1 : i32} : (tensor<6xf32>) -> tensor<6xf32>
    %20 = stablehlo.composite "chlo.asinh" %arg0 {decomposition = @chlo.asinh.impl, version = 1 : i32} : (tensor<6xf32>) -> tensor<6xf32>
    %21 = stablehlo.log %arg0 : tensor<6xf32>
    %22 = stablehlo.log %cst_5 : tensor<f32>
    %23 = stablehlo.broadcast_in_dim %22, dims = [] : (tensor<f32>) -> tensor<6xf32>
    %24 = stablehlo.divide %21, %23 : tensor<6xf32>
    %25 = stablehlo.multiply %arg0, %arg0 : tensor<6xf32>
    %26 = stablehlo.multiply %25, %arg0 : tensor<6xf32>
    %27 = stablehlo.broadcast_in_dim %cst_4, dims = [] : (tensor<f32>) -> tensor<6xf32>
    %28 = stablehlo.power %arg0, %27 : tensor<6xf32>
    %29 = stablehlo.convert %arg0 : (tensor<6xf32>) -> tensor<6xi32>
    %30 = stablehlo.convert %arg0 : (tensor<6xf32>) -> tensor<6xbf16>
    %31 = stablehlo.broadcast_in_dim %cst_3, dims = [] : (tensor<bf16>) -> tensor<6xbf16>
    %32 = stablehlo.add %30, %31 : tensor<6xbf16>
    %33 = call @clip(%arg0, %cst_2, %cst_1) : (tensor<6xf32>, tensor<f32>, tensor<f32>) -> tensor<6xf32>
    %34 = call @remainder(%arg0, %cst_0) : (tensor<6xf32>, tensor<f32>) -> tensor<6xf32>
    %35 = call @floor_divide(%arg0, %cst_0) : (tensor<6xf32>, tensor<f32>) -> tensor<6xf32>
    return %0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11, %12, %13, %14, %15, %16, %17, %18, %19, %20, %24, %26, %28, %29, %32, %33, %34, %35 : tensor<6xf32>, tensor<6xf32>, tensor<6xf32>, tensor<6xf32>, tensor<6xf32>, tensor<6xf32>, tensor<6xf32>, tensor<6xf32>, tensor<6xf32>, tensor<6xf32>, tensor<6xf32>, tensor<6xf32>, tensor<6xf32>, tensor<6xf32>, tensor<6xf32>, tensor<6xf32>, tensor<6xi1>, tensor<6xi1>, tensor<6xf32>, tensor<6xf32>, tensor<6xf32>, tensor<6xf32>, tensor<6xf32>, tensor<6xf32>, tensor<6xi32>, tensor<6xbf16>, tensor<6xf32>, tensor<6xf32>, tensor<6xf32>
  }
  func.func private @chlo.asinh.impl(%arg0: tensor<6xf32>) -> tensor<6xf32> {
    %cst = stablehlo.constant dense<1.000000e+00> : tensor<6xf32>
    %cst_0 = stablehlo.constant dense<2.000000e+00> : tensor<6xf32>
    %cst_1 = stablehlo.constant dense<3.40282347E+38> : tensor<6xf32>
    %0 = stablehlo.sign %arg0 : tensor<6xf32>
    %1 = stablehlo.abs %arg0 : tensor<6xf32>
    %2 = stablehlo.sqrt %cst_1 : tensor<6xf32>
    %3 = stablehlo.compare GE, %1, %2 : (tensor<6xf32>, tensor<6xf32>) -> tensor<6xi1>
    %4 = stablehlo.log %cst_0 : tensor<6xf32>
    %5 = stablehlo.log %1 : tensor<6xf32>
    %6 = stablehlo.add %4, %5 : tensor<6xf32>
    %7 = stablehlo.multiply %1, %1 : tensor<6xf32>
    %8 = stablehlo.add %cst, %7 : tensor<6xf32>
    %9 = stablehlo.sqrt %8 : tensor<6xf32>
    %10 = stablehlo.add %cst, %9 : tensor<6xf32>
    %11 = stablehlo.divide %7, %10 : tensor<6xf32>
    %12 = stablehlo.add %1, %11 : tensor<6xf32>
    %13 = stablehlo.log_plus_one %12 : tensor<6xf32>
    %14 = stablehlo.select %3, %6, %13 : tensor<6xi1>, tensor<6xf32>
    %15 = stablehlo.multiply %0, %14 : tensor<6xf32>
    return %15 : tensor<6xf32>
  }
  func.func private @chlo.sinh.impl(%arg0: tensor<6xf32>) -> tensor<6xf32> {
    %cst = stablehlo.constant dense<1.000000e+00> : tensor<6xf32>
    %cst_0 = stablehlo.constant dense<5.000000e-01> : tensor<6xf32>
    %0 = stablehlo.log %cst_0 : tensor<6xf32>
    %1 = stablehlo.add %arg0, %0 : tensor<6xf32>
    %2 = stablehlo.exponential %1 : tensor<6xf32>
    %3 = stablehlo.subtract %0, %arg0 : tensor<6xf32>
    %4 = stablehlo.exponential %3 : tensor<6xf32>
    %5 = stablehlo.subtract %2, %4 : tensor<6xf32>
    %6 = stablehlo.exponential_minus_one %arg0 : tensor<6xf32>
    %7 = stablehlo.add %6, %cst : tensor<6xf32>
    %8 = stablehlo.divide %6, %7 : tensor<6xf32>
    %9 = stablehlo.add %6, %8 : tensor<6xf32>
    %10 = stablehlo.multiply %cst_0, %9 : tensor<6xf32>
    %11 = stablehlo.abs %arg0 : tensor<6xf32>
    %12 = stablehlo.compare LT, %11, %cst : (tensor<6xf32>, tensor<6xf32>) -> tensor<6xi1>
    %13 = stablehlo.select %12, %10, %5 : tensor<6xi1>, tensor<6xf32>
    return %13 : tensor<6xf32>
  }
  func.func private @chlo.erf.impl(%arg0: tensor<6xf32>) -> tensor<6xf32> {
    %cst = stablehlo.constant dense<1.000000e+00> : tensor<6xf32>
    %cst_0 = stablehlo.constant dense<-1.000000e+00> : tensor<6xf32>
    %cst_1 = stablehlo.constant dense<-0.0142647391> : tensor<6xf32>
    %cst_2 = stablehlo.constant dense<-0.00737332925> : tensor<6xf32>
    %cst_3 = stablehlo.constant dense<-0.00168282702> : tensor<6xf32>
    %cst_4 = stablehlo.constant dense<-2.13374049E-4> : tensor<6xf32>
    %cst_5 = stablehlo.constant dense<-1.45660715E-5> : tensor<6xf32>
    %cst_6 = stablehlo.constant dense<-0.0160960332> : tensor<6xf32>
    %cst_7 = stablehlo.constant dense<-2.954600e-03> : tensor<6xf32>
    %cst_8 = stablehlo.constant dense<-7.34990637E-4> : tensor<6xf32>
    %cst_9 = stablehlo.constant dense<-5.69250624E-5> : tensor<6xf32>
    %cst_10 = stablehlo.constant dense<-2.10102394E-6> : tensor<6xf32>
    %cst_11 = stablehlo.constant dense<2.77068146E-8> : tensor<6xf32>
    %cst_12 = stablehlo.constant dense<-2.72614237E-10> : tensor<6xf32>
    %cst_13 = stablehlo.constant dense<-4.000000e+00> : tensor<6xf32>
    %cst_14 = stablehlo.constant dense<4.000000e+00> : tensor<6xf32>
    %0 = stablehlo.clamp %cst_13, %arg0, %cst_14 : tensor<6xf32>
    %1 = stablehlo.multiply %0, %0 : tensor<6xf32>
    %2 = stablehlo.multiply %cst_12, %1 : tensor<6xf32>
    %3 = stablehlo.add %2, %cst_11 : tensor<6xf32>
    %4 = stablehlo.multiply %3, %1 : tensor<6xf32>
    %5 = stablehlo.add %4, %cst_10 : tensor<6xf32>
    %6 = stablehlo.multiply %5, %1 : tensor<6xf32>
    %7 = stablehlo.add %6, %cst_9 : tensor<6xf32>
    %8 = stablehlo.multiply %7, %1 : tensor<6xf32>
    %9 = stablehlo.add %8, %cst_8 : tensor<6xf32>
    %10 = stablehlo.multiply %9, %1 : tensor<6xf32>
    %11 = stablehlo.add %10, %cst_7 : tensor<6xf32>
    %12 = stablehlo.multiply %11, %1 : tensor<6xf32>
    %13 = stablehlo.add %12, %cst_6 : tensor<6xf32>
    %14 = stablehlo.multiply %cst_5, %1 : tensor<6xf32>
    %15 = stablehlo.add %14, %cst_4 : tensor<6xf32>
    %16 = stablehlo.multiply %15, %1 : tensor<6xf32>
    %17 = stablehlo.add %16, %cst_3 : tensor<6xf32>
    %18 = stablehlo.multiply %17, %1 : tensor<6xf32>
    %19 = stablehlo.add %18, %cst_2 : tensor<6xf32>
    %20 = stablehlo.multiply %19, %1 : tensor<6xf32>
    %21 = stablehlo.add %20, %cst_1 : tensor<6xf32>
    %22 = stablehlo.multiply %0, %13 : tensor<6xf32>
    %23 = stablehlo.divide %22, %21 : tensor<6xf32>
    %24 = stablehlo.clamp %cst_0, %23, %cst : tensor<6xf32>
    return %24 : tensor<6xf32>
  }
  func.func private @round(%arg0: tensor<6xf32>) -> tensor<6xf32> {
    %0 = stablehlo.round_nearest_even %arg0 : tensor<6xf32>
    return %0 : tensor<6xf32>
  }
  func.func private @clip(%arg0: tensor<6xf32>, %arg1: tensor<f32>, %arg2: tensor<f32>) -> tensor<6xf32> {
    %0 = stablehlo.convert %arg1 : tensor<f32>
    %1 = stablehlo.broadcast_in_dim %0, dims = [] : (tensor<f32>) -> tensor<6xf32>
    %2 = stablehlo.maximum %1, %arg0 : tensor<6xf32>
    %3 = stablehlo.convert %arg2 : tensor<f32>
    %4 = stablehlo.broadcast_in_dim %3, dims = [] : (tensor<f32>) -> tensor<6xf32>
    %5 = stablehlo.minimum %4, %2 : tensor<6xf32>
    return %5 : tensor<6xf32>
  }
  func.func private @remainder(%arg0: tensor<6xf32>, %arg1: tensor<f32>) -> tensor<6xf32> {
    %cst = stablehlo.constant dense<0.000000e+00> : tensor<f32>
    %0 = stablehlo.convert %arg1 : tensor<f32>
    %1 = stablehlo.broadcast_in_dim %0, dims = [] : (tensor<f32>) -> tensor<6xf32>
    %2 = stablehlo.remainder %arg0, %1 : tensor<6xf32>
    %3 = stablehlo.broadcast_in_dim %cst, dims = [] : (tensor<f32>) -> tensor<6xf32>
    %4 = stablehlo.compare NE, %2, %3, FLOAT : (tensor<6xf32>, tensor<6xf32>) -> tensor<6xi1>
    %5 = stablehlo.broadcast_in_dim %cst, dims = [] : (tensor<f32>) -> tensor<6xf32>
    %6 = stablehlo.compare LT, %2, %5, FLOAT : (tensor<6xf32>, tensor<6xf32>) -> tensor<6xi1>
    %7 = stablehlo.compare LT, %0, %cst, FLOAT : (tensor<f32>, tensor<f32>) -> tensor<i1>
    %8 = stablehlo.broadcast_in_dim %7, dims = [] : (tensor<i1>) -> tensor<6xi1>
    %9 = stablehlo.compare NE, %6, %8, UNSIGNED : (tensor<6xi1>, tensor<6xi1>) -> tensor<6xi1>
    %10 = stablehlo.and %9, %4 : tensor<6xi1>
    %11 = stablehlo.broadcast_in_dim %0, dims = [] : (tensor<f32>) -> tensor<6xf32>
    %12 = stablehlo.add %2, %11 : tensor<6xf32>
    %13 = stablehlo.select %10, %12, %2 : tensor<6xi1>, tensor<6xf32>
    return %13 : tensor<6xf32>
  }
  func.func private @floor_divide(%arg0: tensor<6xf32>, %arg1: tensor<f32>) -> tensor<6xf32> {
    %cst = stablehlo.constant dense<1.000000e+00> : tensor<f32>
    %cst_0 = stablehlo.constant dense<0.000000e+00> : tensor<f32>
    %0 = stablehlo.convert %arg1 : tensor<f32>
    %1 = stablehlo.broadcast_in_dim %0, dims = [] : (tensor<f32>) -> tensor<6xf32>
    %2 = stablehlo.remainder %arg0, %1 : tensor<6xf32>
    %3 = stablehlo.compare EQ, %0, %cst_0, FLOAT : (tensor<f32>, tensor<f32>) -> tensor<i1>
    %4 = stablehlo.subtract %arg0, %2 : tensor<6xf32>
    %5 = call @_where(%3, %arg0, %4) : (tensor<i1>, tensor<6xf32>, tensor<6xf32>) -> tensor<6xf32>
    %6 = stablehlo.broadcast_in_dim %0, dims = [] : (tensor<f32>) -> tensor<6xf32>
    %7 = stablehlo.divide %5, %6 : tensor<6xf32>
    %8 = stablehlo.broadcast_in_dim %cst_0, dims = [] : (tensor<f32>) -> tensor<6xf32>
    %9 = stablehlo.compare NE, %2, %8, FLOAT : (tensor<6xf32>, tensor<6xf32>) -> tensor<6xi1>
    %10 = stablehlo.sign %0 : tensor<f32>
    %11 = stablehlo.sign %2 : tensor<6xf32>
    %12 = stablehlo.broadcast_in_dim %10, dims = [] : (tensor<f32>) -> tensor<6xf32>
    %13 = stablehlo.compare NE, %12, %11, FLOAT : (tensor<6xf32>, tensor<6xf32>) -> tensor<6xi1>
    %14 = stablehlo.and %9, %13 : tensor<6xi1>
    %15 = stablehlo.broadcast_in_dim %cst, dims = [] : (tensor<f32>) -> tensor<6xf32>
    %16 = stablehlo.subtract %7, %15 : tensor<6xf32>
    %17 = stablehlo.select %14, %16, %7 : tensor<6xi1>, tensor<6xf32>
    %18 = stablehlo.round_nearest_afz %17 : tensor<6xf32>
    return %18 : tensor<6xf32>
  }
  func.func private @_where(%arg0: tensor<i1>, %arg1: tensor<6xf32>, %arg2: tensor<6xf32>) -> tensor<6xf32> {
    %0 = stablehlo.select %arg0, %arg1, %arg2 : tensor<i1>, tensor<6xf32>
    return %0 : tensor<6xf32>
  }
}
