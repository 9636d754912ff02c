/* The loop nest of a region: loops with extents, reads and writes with affine index maps, and a DAG of scalar ops. It
 * is built from a graph by composing the index maps of the shape ops. Lowering makes kernels from it, and the fusion
 * pass uses it to check whether a kernel is possible. No global state; the caller owns a program. (Elsewhere a program
 * is what a user compiles; see docs/glossary.md.) */
#ifndef TS_PASS_PROGRAM_H
#define TS_PASS_PROGRAM_H

#include "base/arena.h"
#include "base/vec.h"
#include "ir/graph.h"
#include "pass/affine.h"

#define TS_PROGRAM_MAX_NODES 256
#define TS_PROGRAM_MAX_OPERANDS 48

typedef enum ts_place { TS_PLACE_OPERAND, TS_PLACE_RESULT, TS_PLACE_TEMP } ts_place;

/* Adds clamp(read(value), 0, limit) * stride bytes to an address, where value is a rank-0 integer. */
typedef struct ts_dynamic_term {
  uint32_t operand; /* index of the lowered op's operand that holds the index */
  ts_dtype dtype;
  int64_t limit;
  int64_t stride;
} ts_dynamic_term;

/* clamp(value, 0, limit) of a slice's start of type `dtype`. */
static inline int64_t ts_dynamic_clamp(ts_dtype dtype, ts_scalar value, int64_t limit) {
  int64_t index = dtype == TS_U64 && value.s64 < 0 ? limit : ts_scalar_to_s64(dtype, value);
  return index < 0 ? 0 : index > limit ? limit : index;
}

typedef struct ts_access {
  ts_place place;
  uint32_t index;
  ts_dtype dtype;
  int32_t term_count;
  const ts_dynamic_term *terms; /* in the arena given to ts_program_build */
  ts_affine at;                 /* bytes */
} ts_access;

typedef enum ts_program_kind {
  TS_PROGRAM_LOAD,   /* slot: load */
  TS_PROGRAM_SCALAR, /* slot: scalar */
  TS_PROGRAM_INDEX,  /* slot: index */
  TS_PROGRAM_GATHER, /* slot: load; a: node with the index; b, c: scalars with limit and step (bytes) */
  TS_PROGRAM_OP,     /* an op on nodes a, b, c */
  TS_PROGRAM_REDUCE, /* reduces node a by an op over the reduced loops, in row-major order */
  TS_PROGRAM_ARG     /* arg-reduces node a; b: high */
} ts_program_kind;

typedef struct ts_program_node {
  ts_program_kind kind;
  ts_opcode op;
  ts_dtype dtype;
  int32_t slot, a, b, c; /* -1 when unused */
  bool varies;           /* depends on the reduced loops */
} ts_program_node;

static inline bool ts_program_node_reduces(const ts_program_node *node) {
  return node->kind == TS_PROGRAM_REDUCE || node->kind == TS_PROGRAM_ARG;
}

typedef struct ts_program_store {
  ts_access to;
  int32_t node;
} ts_program_store;

typedef struct ts_program_scalar {
  ts_dtype dtype;
  ts_scalar value;
} ts_program_scalar;

typedef struct ts_program {
  ts_loops loops;
  int32_t kept;                  /* loops from this one on are reduced; loops.count: none */
  bool reduces;                  /* has reductions, perhaps over one element only */
  TS_VEC(ts_program_node) nodes; /* in topological order */
  TS_VEC(ts_access) loads;
  TS_VEC(ts_program_store) stores;
  TS_VEC(ts_affine) indices;
  TS_VEC(ts_program_scalar) scalars;
} ts_program;

/* A value to compute over `shape`, and its destination. It is read at the loops' indices plus `skip` (a rank-0 value at
 * every point) and written at `offset` + indices * `stride`, in elements of the result. */
typedef struct ts_program_root {
  ts_value_id value;
  uint32_t result;
  ts_shape shape;
  int64_t skip[TS_MAX_RANK], stride[TS_MAX_RANK];
  int64_t offset;
} ts_program_root;

typedef struct ts_program_spec {
  const ts_graph *graph;
  /* True when a value comes from outside; sets its operand index. */
  bool (*operand)(const void *context, ts_value_id value, uint32_t *out_index);
  const void *context;
  /* Reads a value of an enclosing graph if it is a constant; may be NULL. */
  bool (*constant)(const void *context, ts_value_id value, ts_scalar *out);
  const ts_program_root *roots;
  size_t root_count;
  ts_op_id reduce; /* a reduction whose operand defines the loops; TS_NO_ID: the first root does */
} ts_program_spec;

/* A root that stores all of `value`, dense, into result `result`. */
ts_program_root ts_program_root_whole(const ts_graph *graph, ts_value_id value, uint32_t result);

/* No value may be empty. TS_UNIMPLEMENTED when the region is not an affine loop nest. After success `out` needs
 * ts_program_deinit. */
ts_status ts_program_build(const ts_program_spec *spec, ts_arena *arena, ts_program *out);
void ts_program_deinit(ts_program *program);

/* True when the reduced loops can be merged into one for every access. */
bool ts_program_row_is_one(const ts_program *program);
/* True when a reduction depends on another one's result. */
bool ts_program_has_chain(const ts_program *program);
/* True when some result has an element for each point instead of each row. */
bool ts_program_stores_points(const ts_program *program);
/* The same for one result. Only its index map counts, not whether the elements of a row differ. */
bool ts_program_is_of_points(const ts_program *program, const ts_program_store *store);
/* True when such an element depends on a reduction's result. */
bool ts_program_points_wait(const ts_program *program);
/* Bytes that the loads read: each element once for each load, gathered elements not counted. */
int64_t ts_program_bytes_read(const ts_program *program);

/* Adds a node and derives `varies` from its operands. */
ts_status ts_program_add_node(ts_program *program, ts_program_node node, int32_t *out);
ts_status ts_program_add_scalar(ts_program *program, ts_dtype dtype, ts_scalar value, int32_t *out);

#endif
