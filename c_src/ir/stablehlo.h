/* Writes a graph as a module of StableHLO, with chlo for the functions that
 * StableHLO lacks: docs/stablehlo.md. One way only. Thread-safe on a graph that
 * nobody changes; the caller owns the text. */
#ifndef TS_IR_STABLEHLO_H
#define TS_IR_STABLEHLO_H

#include "ir/graph.h"

/* The graph is verified first. Ops are in MLIR's generic form, which does not change between versions. */
ts_status ts_graph_print_stablehlo(const ts_graph *graph, ts_text *out);

#endif
