/* The loop nest of a region: loops with extents, reads and writes with affine index maps, and a DAG of scalar ops. It
 * is built from a graph by composing the index maps of the shape ops. Lowering makes kernels from it, and the fusion
 * pass uses it to check whether a kernel is possible. No global state; the caller owns a nest. */
#ifndef TS_PASS_NEST_H
#define TS_PASS_NEST_H

#include "base/arena.h"
#include "base/vec.h"
#include "ir/graph.h"
#include "pass/affine.h"

#define TS_NEST_MAX_NODES 256
#define TS_NEST_MAX_OPERANDS 48

typedef enum ts_role { TS_ROLE_OPERAND, TS_ROLE_RESULT, TS_ROLE_TEMP } ts_role;

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
  ts_role role;
  uint32_t index;
  ts_dtype dtype;
  int32_t term_count;
  const ts_dynamic_term *terms; /* in the arena given to ts_nest_build */
  ts_affine at;                 /* bytes */
} ts_access;

typedef enum ts_nest_kind {
  TS_NEST_LOAD,   /* slot: load */
  TS_NEST_SCALAR, /* slot: scalar */
  TS_NEST_INDEX,  /* slot: index */
  TS_NEST_GATHER, /* slot: load; a: node with the index; b, c: scalars with limit and step (bytes) */
  TS_NEST_OP,     /* an op on nodes a, b, c */
  TS_NEST_REDUCE, /* reduces node a by an op over the reduced loops, in row-major order */
  TS_NEST_ARG     /* arg-reduces node a; b: high */
} ts_nest_kind;

typedef struct ts_nest_node {
  ts_nest_kind kind;
  ts_opcode op;
  ts_dtype dtype;
  int32_t slot, a, b, c; /* -1 when unused */
  bool varies;           /* depends on the reduced loops */
} ts_nest_node;

static inline bool ts_nest_node_reduces(const ts_nest_node *node) {
  return node->kind == TS_NEST_REDUCE || node->kind == TS_NEST_ARG;
}

typedef struct ts_nest_store {
  ts_access to;
  int32_t node;
} ts_nest_store;

typedef struct ts_nest_scalar {
  ts_dtype dtype;
  ts_scalar value;
} ts_nest_scalar;

typedef struct ts_nest {
  ts_loops loops;
  int32_t kept;               /* loops from this one on are reduced; loops.count: none */
  bool reduces;               /* has reductions, perhaps over one element only */
  bool has_parts;             /* the last kept loop counts parts of a row */
  bool has_blocks;            /* the last kept loop counts blocks of a row in pieces: no load moves along it */
  TS_VEC(ts_nest_node) nodes; /* in topological order */
  TS_VEC(ts_access) loads;
  TS_VEC(ts_nest_store) stores;
  TS_VEC(ts_affine) indices;
  TS_VEC(ts_nest_scalar) scalars;
} ts_nest;

/* A value to compute over `shape`, and its destination. It is read at the loops' indices plus `skip` (a rank-0 value at
 * every point) and written at `offset` + indices * `stride`, in elements of the result. */
typedef struct ts_nest_root {
  ts_value_id value;
  uint32_t result;
  ts_shape shape;
  int64_t skip[TS_MAX_RANK], stride[TS_MAX_RANK];
  int64_t offset;
} ts_nest_root;

typedef struct ts_nest_spec {
  const ts_graph *graph;
  /* True when a value comes from outside; sets its operand index. */
  bool (*operand)(const void *context, ts_value_id value, uint32_t *out_index);
  const void *context;
  /* Reads a value of an enclosing graph if it is a constant; may be NULL. */
  bool (*constant)(const void *context, ts_value_id value, ts_scalar *out);
  const ts_nest_root *roots;
  size_t root_count;
  ts_op_id reduce; /* a reduction whose operand defines the loops; TS_NO_ID: the first root does */
} ts_nest_spec;

/* A root that stores all of `value`, dense, into result `result`. */
ts_nest_root ts_nest_root_whole(const ts_graph *graph, ts_value_id value, uint32_t result);

/* No value may be empty. TS_UNIMPLEMENTED when the region is not an affine loop nest. After success `out` needs
 * ts_nest_deinit. */
ts_status ts_nest_build(const ts_nest_spec *spec, ts_arena *arena, ts_nest *out);
void ts_nest_deinit(ts_nest *nest);

/* True for views through which a gather reads memory: its index moves along one axis of their operand. */
static inline bool ts_nest_gathers_through(ts_opcode code) {
  return code == TS_OP_SLICE || code == TS_OP_TRANSPOSE || code == TS_OP_REVERSE;
}

/* True when the reduced loops can be merged into one for every access. */
bool ts_nest_row_is_one(const ts_nest *nest);
/* The columns of rows whose reduced loops are one: adjacent elements in the last kept loops, where each access has an
 * element for each point, for each column, or for all of them. 0: there are none, or nodes depend on the place. */
int64_t ts_nest_columns(const ts_nest *nest);
/* True when a reduction depends on another one's result. */
bool ts_nest_has_chain(const ts_nest *nest);
/* True when some result has an element for each point instead of each row. */
bool ts_nest_stores_points(const ts_nest *nest);
/* The same for one result. Only its index map counts, not whether the elements of a row differ. */
bool ts_nest_is_of_points(const ts_nest *nest, const ts_nest_store *store);
/* True when such an element depends on a reduction's result. */
bool ts_nest_points_wait(const ts_nest *nest);
/* Bytes that the loads read: each element once for each load, gathered elements not counted. */
int64_t ts_nest_bytes_read(const ts_nest *nest);

/* Loops [first, end) of a row that are one for every access. */
typedef struct ts_nest_group {
  int32_t first, end;
  int64_t extent;
} ts_nest_group;

/* If the order of a row's elements changes no bit of the results: puts the reduced loops into the order in which the
 * elements lie in memory. */
void ts_nest_order_row(ts_nest *nest);
/* In such a row: finds the loops to reduce first. False where a copy of the elements is needed. */
bool ts_nest_find_group(const ts_nest *nest, ts_nest_group *out);

/* True when a row is loops that are two groups, along whose last one all accesses move by adjacent elements or not at
 * all. */
bool ts_nest_is_in_pieces(const ts_nest *nest);

/* Adds a node and derives `varies` from its operands. */
ts_status ts_nest_add_node(ts_nest *nest, ts_nest_node node, int32_t *out);
ts_status ts_nest_add_scalar(ts_nest *nest, ts_dtype dtype, ts_scalar value, int32_t *out);

#endif
