// passes: verify
// reads: test/stablehlo/mesh/parts_local.mlir test/stablehlo/mesh/parts_local.vhlo
