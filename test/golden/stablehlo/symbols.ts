// passes: simplify,fuse
// reads: test/stablehlo/names/network.mlir test/stablehlo/names/network.vhlo test/stablehlo/names/network.exported
// options: --size=4
