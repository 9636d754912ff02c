/* StableHLO in: MLIR text of the StableHLO dialect, as JAX and StableHLO's tools write it, becomes a graph. Three
 * steps: tokens (mlir_lex.h); a tree of functions, ops and attributes, with equal nodes for pretty and generic forms
 * (mlir_tree.h, mlir_parse.c); ops of the graph (make.h). Input is foreign data: its size bounds the memory, and an
 * error names line, column, op and the expected input. docs/stablehlo.md lists the forms. Thread-safe: there is no
 * state.
 */
#ifndef TS_STABLEHLO_READ_H
#define TS_STABLEHLO_READ_H

#include "ir/graph.h"

/* The graph of the public function `main`, or of the only function. The text need not be NUL-terminated. The code of
 * the error is TS_UNIMPLEMENTED for parts of StableHLO that Tessera cannot do. */
ts_status ts_stablehlo_read(const char *text, size_t length, ts_graph **out);

#endif
