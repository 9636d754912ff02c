/* StableHLO in: MLIR text or bytecode of the StableHLO dialect, as JAX and StableHLO's tools write it, becomes a graph.
 * Three steps: tokens (mlir_lex.h); a tree of functions, ops and attributes, with equal nodes for pretty and generic
 * forms (mlir_tree.h, mlir_parse.c) and for bytecode (bytecode.h); ops of the graph (make.h). Input is foreign data:
 * its size bounds the memory, and an error names line and column, or the byte, the op and the expected input.
 * docs/stablehlo.md lists the forms. Thread-safe: there is no state.
 */
#ifndef TS_STABLEHLO_READ_H
#define TS_STABLEHLO_READ_H

#include "base/arena.h"
#include "ir/graph.h"

/* A module whose @main has parts that are written for one partition of a mesh (sdy.manual_computation) becomes a
 * partitioned graph, with the mesh and the shardings of @main's arguments and results.
 *
 * The graph of the public function `main`, or of the only function. A text need not be NUL-terminated. Bytecode begins
 * with "ML\xefR". What serialize() of JAX's export returns is read, too: the bytecode is a part of it. The code of the
 * error is TS_UNIMPLEMENTED for parts of StableHLO that Tessera cannot do. */
ts_status ts_stablehlo_read(const char *text, size_t length, ts_graph **out);

/* The same for a program whose sizes are symbols ("tensor<?x8xf32>"): the arguments' sizes are given, and all others
 * follow. A check of sizes that fails is an error with the module's own text. Without given types `*out` is NULL after
 * success if there are symbols. The graph has places: the lines
 * of the locations of its ops (location/location.h). */
ts_status ts_stablehlo_read_for(const char *text, size_t length, const ts_types *given, ts_graph **out);

/* Properties of parameters and results that their types in the graph lack. */
enum {
  TS_STABLEHLO_BOOL = 1,   /* i1: u8 in the graph, 0 or 1 */
  TS_STABLEHLO_DONATED = 2 /* the memory of the parameter may become a result's */
};
typedef struct ts_stablehlo_signature {
  uint8_t *params, *results; /* flags of each */
} ts_stablehlo_signature;

/* The same, and the signature, which the caller deinits after success. */
ts_status ts_stablehlo_read_signature(const char *text, size_t length, ts_graph **out,
                                      ts_stablehlo_signature *signature);
void ts_stablehlo_signature_deinit(ts_stablehlo_signature *signature);

/* What a caller knows of an argument or a result. */
typedef struct ts_stablehlo_leaf {
  const char *name; /* "weights['w'][0]": JAX's name of a leaf of a container; NULL: the module has no name for it */
  size_t name_length;
  ts_dtype dtype;        /* of booleans u8 */
  const ts_shape *shape; /* room for its rank only; a size that is a symbol is -1 */
} ts_stablehlo_leaf;
typedef struct ts_stablehlo_leaves {
  ts_arena arena;
  size_t param_count, result_count;
  ts_stablehlo_leaf *params, *results;
} ts_stablehlo_leaves;

/* The arguments and results of a module's function, without its program. They refer to the text. The caller deinits
 * them after success. */
ts_status ts_stablehlo_read_leaves(const char *text, size_t length, ts_stablehlo_leaves *out);
void ts_stablehlo_leaves_deinit(ts_stablehlo_leaves *leaves);

/* The processes that run a program together, at most 4096: replica r and partition p make process
 * r * partitions + p. */
typedef struct ts_stablehlo_grid {
  int64_t replicas, partitions;
} ts_stablehlo_grid;

/* The program of several processes. It is a partitioned graph if it is written for one of them: it has replicas,
 * collectives or sdy.manual_computation. Else it is a graph on whole values, with a mesh and with the shardings of the
 * module, for ts_shard_partition. */
ts_status ts_stablehlo_read_processes(const char *text, size_t length, const ts_stablehlo_grid *grid, ts_graph **out,
                                      ts_stablehlo_signature *signature);

/* The program on whole values of a module for so many partitions: with the mesh, and with the module's shardings of its
 * values, which say how a partitioner cuts them. `*out` is NULL after success if there are symbols. */
ts_status ts_stablehlo_read_whole(const char *text, size_t length, int64_t partitions, ts_graph **out);

/* For how many partitions a module is written, and how its arguments and results are cut. */
typedef struct ts_stablehlo_shardings {
  ts_mesh mesh; /* of rank 0: the module has none, or none of several partitions */
  int64_t partitions;
  bool is_local; /* the graph is the program of one partition; else it is on whole values */
  size_t param_count, result_count;
  ts_root_sharding *params, *results;
} ts_stablehlo_shardings;

/* The caller deinits `out` after success. */
ts_status ts_stablehlo_read_shardings(const char *text, size_t length, ts_stablehlo_shardings *out);
void ts_stablehlo_shardings_deinit(ts_stablehlo_shardings *shardings);

#endif
