// fails
// reads: test/golden/stablehlo/callback.mlir
