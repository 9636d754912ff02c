// passes: report
// reads: test/stablehlo/mesh/parts.mlir test/stablehlo/mesh/parts.vhlo
// sends: 3 collectives, 64 bytes
