/* Writes a graph as a StableHLO module, with chlo for functions that StableHLO lacks: docs/stablehlo.md. The reader is
 * stablehlo/read.h. Thread-safe while no thread changes the graph; the caller owns the text. */
#ifndef TS_IR_STABLEHLO_H
#define TS_IR_STABLEHLO_H

#include "ir/graph.h"

/* The graph is verified first. Ops are in MLIR's generic form, which does not change between versions. */
ts_status ts_graph_print_stablehlo(const ts_graph *graph, ts_text *out);
/* The same with options; zeros are those of the function above. */
typedef enum ts_stablehlo_precision {
  TS_STABLEHLO_HIGHEST,
  TS_STABLEHLO_HIGH,
  TS_STABLEHLO_DEFAULT
} ts_stablehlo_precision;
/* Barriers between ops that a compiler would unite or reorder (stablehlo_barrier.c). */
typedef enum ts_stablehlo_barriers {
  TS_STABLEHLO_NO_BARRIERS,
  TS_STABLEHLO_FEW_BARRIERS, /* where results may overflow: for compilers that do not fuse ops beyond a barrier */
  TS_STABLEHLO_ALL_BARRIERS  /* also where results would be rounded otherwise */
} ts_stablehlo_barriers;
typedef struct ts_stablehlo_options {
  /* Partitions of a partitioned program are replicas. Compilers cut the program of a partition again, as its shardings
   * say, and leave the program of a replica as it is. */
  bool replicas;
  ts_stablehlo_precision precision; /* of products and convolutions */
  ts_stablehlo_barriers barriers;
  /* Products and convolutions of f16 and bf16 have results of that type, not f32 that is rounded by a second op. For
   * devices that add in f32 whatever the result's type is: their libraries then write the rounded result themselves. */
  bool rounds_products;
} ts_stablehlo_options;
/* What plugins for accelerators get, with precision HIGHEST and without a mesh. */
ts_stablehlo_options ts_stablehlo_for_accelerators(void);
ts_status ts_graph_print_stablehlo_with(const ts_graph *graph, const ts_stablehlo_options *options, ts_text *out);

/* The name of an elementwise op in StableHLO or chlo, and the direction of a comparison; NULL for other ops. */
const char *ts_stablehlo_name(ts_opcode code);
const char *ts_stablehlo_direction(ts_opcode code);

#endif
