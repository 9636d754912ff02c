#loc1 = loc("xs[0]")
#loc2 = loc("xs[1]")
module @jit_numbered attributes {jax.uses_shape_polymorphism = false, mhlo.num_partitions = 1 : i32, mhlo.num_replicas = 1 : i32} {
  func.func public @main(%arg0: tensor<2xf32> loc("xs[0]"), %arg1: tensor<2xf32> loc("xs[1]")) -> (tensor<2xf32> {jax.result_info = "result[0]"}, tensor<2xf32> {jax.result_info = "result[2]"}) {
    return %arg1, %arg0 : tensor<2xf32>, tensor<2xf32> loc(#loc5)
  } loc(#loc)
} loc(#loc)
#loc = loc(unknown)
#loc3 = loc("names.py":77:15 to :98)
#loc4 = loc("<module>"(#loc3))
#loc5 = loc("jit(numbered)"(#loc4))
