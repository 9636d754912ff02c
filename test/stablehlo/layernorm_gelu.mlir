module @jit_layernorm_gelu attributes {jax.uses_shape_polymorphism = false, mhlo.num_partitions = 1 : i32, mhlo.num_replicas = 1 : i32} {
  func.func public @main(%arg0: tensor<4x6xf32>, %arg1: tensor<6xf32>, %arg2: tensor<6xf32>) -> (tensor<4x6xf32> {jax.result_info = "result"}) {
    %cst = stablehlo.constant dense<1.12837911> : tensor<4x6xf32>
    %cst_0 = stablehlo.constant dense<-0.37612626> : tensor<4x6xf32>
    %cst_1 = stablehlo.constant dense<0.112835854> : tensor<4x6xf32>
    %cst_2 = stablehlo.constant dense<-0.0268538129> : tensor<4x6xf32>
    %cst_3 = stablehlo.constant dense<0.00518832775> : tensor<4x6xf32>
    %cst_4 = stablehlo.constant dense<-8.0101937E-4> : tensor<4x6xf32>
    %cst_5 = stablehlo.constant dense<7.85386146E-5> : tensor<4x6xf32>
    %cst_6 = stablehlo.constant dense<0.000000e+00> : tensor<4x6xf32>
    %cst_7 = stablehlo.constant dense<-88.7228394> : tensor<4x6xf32>
    %cst_8 = stablehlo.constant dense<0.564189494> : tensor<4x6xf32>
    %cst_9 = stablehlo.constant dense<-0.282076746> : tensor<4x6xf32>
    %cst_10 = stablehlo.constant dense<0.42184633> : tensor<4x6xf32>
    %cst_11 = stablehlo.constant dense<-1.01526523> : tensor<4x6xf32>
    %cst_12 = stablehlo.constant dense<2.92101908> : tensor<4x6xf32>
    %cst_13 = stablehlo.constant dense<-7.49551868> : tensor<4x6xf32>
    %cst_14 = stablehlo.constant dense<1.297720e+01> : tensor<4x6xf32>
    %cst_15 = stablehlo.constant dense<-10.477664> : tensor<4x6xf32>
    %cst_16 = stablehlo.constant dense<0.563825965> : tensor<4x6xf32>
    %cst_17 = stablehlo.constant dense<-0.274112701> : tensor<4x6xf32>
    %cst_18 = stablehlo.constant dense<3.404880e-01> : tensor<4x6xf32>
    %cst_19 = stablehlo.constant dense<-0.494451523> : tensor<4x6xf32>
    %cst_20 = stablehlo.constant dense<0.621000468> : tensor<4x6xf32>
    %cst_21 = stablehlo.constant dense<-0.582473278> : tensor<4x6xf32>
    %cst_22 = stablehlo.constant dense<0.368742466> : tensor<4x6xf32>
    %cst_23 = stablehlo.constant dense<-0.138703942> : tensor<4x6xf32>
    %cst_24 = stablehlo.constant dense<2.326820e-02> : tensor<4x6xf32>
    %cst_25 = stablehlo.constant dense<2.000000e+00> : tensor<4x6xf32>
    %cst_26 = stablehlo.constant dense<1.000000e+00> : tensor<4x6xf32>
    %cst_27 = stablehlo.constant dense<0.707106769> : tensor<f32>
    %cst_28 = stablehlo.constant dense<5.000000e-01> : tensor<f32>
    %cst_29 = stablehlo.constant dense<9.99999974E-6> : tensor<f32>
    %c = stablehlo.constant dense<0> : tensor<i32>
    %cst_30 = stablehlo.constant dense<6.000000e+00> : tensor<f32>
    %cst_31 = stablehlo.constant dense<0.000000e+00> : tensor<f32>
    %0 = stablehlo.reduce(%arg0 init: %cst_31) applies stablehlo.add across dimensions = [1] : (tensor<4x6xf32>, tensor<f32>) -> tensor<4xf32>
    %1 = stablehlo.broadcast_in_dim %0, dims = [0] : (tensor<4xf32>) -> tensor<4x1xf32>
    %2 = stablehlo.broadcast_in_dim %cst_30, dims = [] : (tensor<f32>) -> tensor<4x1xf32>
    %3 = stablehlo.divide %1, %2 : tensor<4x1xf32>
    %4 = call @_var(%arg0, %c) : (tensor<4x6xf32>, tensor<i32>) -> tensor<4x1xf32>
    %5 = stablehlo.broadcast_in_dim %3, dims = [0, 1] : (tensor<4x1xf32>) -> tensor<4x6xf32>
    %6 = stablehlo.subtract %arg0, %5 : tensor<4x6xf32>
    %7 = stablehlo.broadcast_in_dim %cst_29, dims = [] : (tensor<f32>) -> tensor<4x1xf32>
    %8 = stablehlo.add %4, %7 : tensor<4x1xf32>
    %9 = stablehlo.sqrt %8 : tensor<4x1xf32>
    %10 = stablehlo.broadcast_in_dim %9, dims = [0, 1] : (tensor<4x1xf32>) -> tensor<4x6xf32>
    %11 = stablehlo.divide %6, %10 : tensor<4x6xf32>
    %12 = stablehlo.broadcast_in_dim %arg1, dims = [1] : (tensor<6xf32>) -> tensor<1x6xf32>
    %13 = stablehlo.broadcast_in_dim %12, dims = [0, 1] : (tensor<1x6xf32>) -> tensor<4x6xf32>
    %14 = stablehlo.multiply %11, %13 : tensor<4x6xf32>
    %15 = stablehlo.broadcast_in_dim %arg2, dims = [1] : (tensor<6xf32>) -> tensor<1x6xf32>
    %16 = stablehlo.broadcast_in_dim %15, dims = [0, 1] : (tensor<1x6xf32>) -> tensor<4x6xf32>
    %17 = stablehlo.add %14, %16 : tensor<4x6xf32>
    %18 = stablehlo.broadcast_in_dim %cst_28, dims = [] : (tensor<f32>) -> tensor<4x6xf32>
    %19 = stablehlo.multiply %18, %17 : tensor<4x6xf32>
    %20 = stablehlo.negate %17 : tensor<4x6xf32>
    %21 = stablehlo.broadcast_in_dim %cst_27, dims = [] : (tensor<f32>) -> tensor<4x6xf32>
    %22 = stablehlo.multiply %20, %21 : tensor<4x6xf32>
    %23 = stablehlo.multiply %22, %22 : tensor<4x6xf32>
    %24 = stablehlo.negate %23 : tensor<4x6xf32>
    %25 = stablehlo.abs %22 : tensor<4x6xf32>
    %26 = stablehlo.divide %cst_26, %23 : tensor<4x6xf32>
    %27 = stablehlo.exponential %24 : tensor<4x6xf32>
    %28 = stablehlo.divide %cst_26, %25 : tensor<4x6xf32>
    %29 = stablehlo.multiply %27, %28 : tensor<4x6xf32>
    %30 = stablehlo.compare LT, %25, %cst_25 : (tensor<4x6xf32>, tensor<4x6xf32>) -> tensor<4x6xi1>
    %31 = stablehlo.multiply %cst_24, %26 : tensor<4x6xf32>
    %32 = stablehlo.add %31, %cst_23 : tensor<4x6xf32>
    %33 = stablehlo.multiply %32, %26 : tensor<4x6xf32>
    %34 = stablehlo.add %33, %cst_22 : tensor<4x6xf32>
    %35 = stablehlo.multiply %34, %26 : tensor<4x6xf32>
    %36 = stablehlo.add %35, %cst_21 : tensor<4x6xf32>
    %37 = stablehlo.multiply %36, %26 : tensor<4x6xf32>
    %38 = stablehlo.add %37, %cst_20 : tensor<4x6xf32>
    %39 = stablehlo.multiply %38, %26 : tensor<4x6xf32>
    %40 = stablehlo.add %39, %cst_19 : tensor<4x6xf32>
    %41 = stablehlo.multiply %40, %26 : tensor<4x6xf32>
    %42 = stablehlo.add %41, %cst_18 : tensor<4x6xf32>
    %43 = stablehlo.multiply %42, %26 : tensor<4x6xf32>
    %44 = stablehlo.add %43, %cst_17 : tensor<4x6xf32>
    %45 = stablehlo.multiply %44, %26 : tensor<4x6xf32>
    %46 = stablehlo.add %45, %cst_16 : tensor<4x6xf32>
    %47 = stablehlo.multiply %cst_15, %26 : tensor<4x6xf32>
    %48 = stablehlo.add %47, %cst_14 : tensor<4x6xf32>
    %49 = stablehlo.multiply %48, %26 : tensor<4x6xf32>
    %50 = stablehlo.add %49, %cst_13 : tensor<4x6xf32>
    %51 = stablehlo.multiply %50, %26 : tensor<4x6xf32>
    %52 = stablehlo.add %51, %cst_12 : tensor<4x6xf32>
    %53 = stablehlo.multiply %52, %26 : tensor<4x6xf32>
    %54 = stablehlo.add %53, %cst_11 : tensor<4x6xf32>
    %55 = stablehlo.multiply %54, %26 : tensor<4x6xf32>
    %56 = stablehlo.add %55, %cst_10 : tensor<4x6xf32>
    %57 = stablehlo.multiply %56, %26 : tensor<4x6xf32>
    %58 = stablehlo.add %57, %cst_9 : tensor<4x6xf32>
    %59 = stablehlo.multiply %58, %26 : tensor<4x6xf32>
    %60 = stablehlo.add %59, %cst_8 : tensor<4x6xf32>
    %61 = stablehlo.select %30, %46, %60 : tensor<4x6xi1>, tensor<4x6xf32>
    %62 = stablehlo.multiply %29, %61 : tensor<4x6xf32>
    %63 = stablehlo.compare LT, %24, %cst_7 : (tensor<4x6xf32>, tensor<4x6xf32>) -> tensor<4x6xi1>
    %64 = stablehlo.select %63, %cst_6, %62 : tensor<4x6xi1>, tensor<4x6xf32>
    %65 = stablehlo.compare LT, %22, %cst_6 : (tensor<4x6xf32>, tensor<4x6xf32>) -> tensor<4x6xi1>
    %66 = stablehlo.subtract %cst_25, %64 : tensor<4x6xf32>
    %67 = stablehlo.select %65, %66, %64 : tensor<4x6xi1>, tensor<4x6xf32>
    %68 = stablehlo.multiply %22, %22 : tensor<4x6xf32>
    %69 = stablehlo.multiply %cst_5, %68 : tensor<4x6xf32>
    %70 = stablehlo.add %69, %cst_4 : tensor<4x6xf32>
    %71 = stablehlo.multiply %70, %68 : tensor<4x6xf32>
    %72 = stablehlo.add %71, %cst_3 : tensor<4x6xf32>
    %73 = stablehlo.multiply %72, %68 : tensor<4x6xf32>
    %74 = stablehlo.add %73, %cst_2 : tensor<4x6xf32>
    %75 = stablehlo.multiply %74, %68 : tensor<4x6xf32>
    %76 = stablehlo.add %75, %cst_1 : tensor<4x6xf32>
    %77 = stablehlo.multiply %76, %68 : tensor<4x6xf32>
    %78 = stablehlo.add %77, %cst_0 : tensor<4x6xf32>
    %79 = stablehlo.multiply %78, %68 : tensor<4x6xf32>
    %80 = stablehlo.add %79, %cst : tensor<4x6xf32>
    %81 = stablehlo.multiply %22, %80 : tensor<4x6xf32>
    %82 = stablehlo.subtract %cst_26, %81 : tensor<4x6xf32>
    %83 = stablehlo.abs %22 : tensor<4x6xf32>
    %84 = stablehlo.compare LT, %83, %cst_26 : (tensor<4x6xf32>, tensor<4x6xf32>) -> tensor<4x6xi1>
    %85 = stablehlo.select %84, %82, %67 : tensor<4x6xi1>, tensor<4x6xf32>
    %86 = stablehlo.multiply %19, %85 : tensor<4x6xf32>
    return %86 : tensor<4x6xf32>
  }
  func.func private @_var(%arg0: tensor<4x6xf32>, %arg1: tensor<i32>) -> tensor<4x1xf32> {
    %cst = stablehlo.constant dense<0x7FC00000> : tensor<f32>
    %cst_0 = stablehlo.constant dense<6.000000e+00> : tensor<f32>
    %cst_1 = stablehlo.constant dense<0.000000e+00> : tensor<f32>
    %0 = stablehlo.reduce(%arg0 init: %cst_1) applies stablehlo.add across dimensions = [1] : (tensor<4x6xf32>, tensor<f32>) -> tensor<4xf32>
    %1 = stablehlo.broadcast_in_dim %0, dims = [0] : (tensor<4xf32>) -> tensor<4x1xf32>
    %2 = stablehlo.broadcast_in_dim %cst_0, dims = [] : (tensor<f32>) -> tensor<4x1xf32>
    %3 = stablehlo.divide %1, %2 : tensor<4x1xf32>
    %4 = stablehlo.broadcast_in_dim %3, dims = [0, 1] : (tensor<4x1xf32>) -> tensor<4x6xf32>
    %5 = stablehlo.subtract %arg0, %4 : tensor<4x6xf32>
    %6 = stablehlo.multiply %5, %5 : tensor<4x6xf32>
    %7 = stablehlo.convert %arg1 : (tensor<i32>) -> tensor<f32>
    %8 = stablehlo.subtract %cst_0, %7 : tensor<f32>
    %9 = stablehlo.reduce(%6 init: %cst_1) applies stablehlo.add across dimensions = [1] : (tensor<4x6xf32>, tensor<f32>) -> tensor<4xf32>
    %10 = stablehlo.broadcast_in_dim %9, dims = [0] : (tensor<4xf32>) -> tensor<4x1xf32>
    %11 = stablehlo.broadcast_in_dim %8, dims = [] : (tensor<f32>) -> tensor<4x1xf32>
    %12 = stablehlo.divide %10, %11 : tensor<4x1xf32>
    %13 = stablehlo.compare GT, %8, %cst_1, FLOAT : (tensor<f32>, tensor<f32>) -> tensor<i1>
    %14 = call @_where(%13, %12, %cst) : (tensor<i1>, tensor<4x1xf32>, tensor<f32>) -> tensor<4x1xf32>
    return %14 : tensor<4x1xf32>
  }
  func.func private @_where(%arg0: tensor<i1>, %arg1: tensor<4x1xf32>, %arg2: tensor<f32>) -> tensor<4x1xf32> {
    %0 = stablehlo.convert %arg2 : tensor<f32>
    %1 = stablehlo.broadcast_in_dim %0, dims = [] : (tensor<f32>) -> tensor<4x1xf32>
    %2 = stablehlo.select %arg0, %arg1, %1 : tensor<i1>, tensor<4x1xf32>
    return %2 : tensor<4x1xf32>
  }
}
