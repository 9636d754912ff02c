// checks
// reads: test/stablehlo/mlp_grad.mlir test/stablehlo/mlp_grad.vhlo
