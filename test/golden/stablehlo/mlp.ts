// same passes: simplify,fuse
// reads: test/stablehlo/mlp.mlir test/stablehlo/mlp.vhlo test/stablehlo/mlp.bc
