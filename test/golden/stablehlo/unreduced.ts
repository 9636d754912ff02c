// fails
// reads: test/golden/stablehlo/unreduced.mlir
