/* Shared by the files of the partitioner: the program that is being made, and the parts of the values of the whole
 * program in it. Internal to shard/. Used by one thread; the call of ts_shard_partition owns all of it. */
#ifndef TS_SHARD_PARTITIONER_H
#define TS_SHARD_PARTITIONER_H

#include "shard/propagate.h"
#include "shard/reshard.h"
#include "shard/shard.h"

/* A value of the whole program as parts of the new one, cut in one way. A value that is needed in several ways has
 * several, so that each is made once. With `partial` axes it is a term: the value is the sum of the group's terms. */
typedef struct ts_variant {
  const ts_sharding *sharding;
  uint64_t partial; /* a bit for each mesh axis */
  ts_value_id value;
  struct ts_variant *next;
} ts_variant;

/* A region of the new program. A partition's coordinates are its last parameter; TS_NO_ID until something needs them.
 */
typedef struct ts_scope {
  ts_region_id region;
  ts_value_id coordinates, coordinate[TS_MAX_MESH_AXES];
} ts_scope;

/* Which values stay partial sums until later (partial.c), by value of the whole program. */
typedef struct ts_deferral {
  uint64_t *partial; /* the axes of a value that is predicted to be a partial sum */
  int64_t *bytes;    /* the least cost of summing the value, with all its uses */
  bool *whole;       /* a use needs the sum */
  bool *later;       /* uses take terms */
} ts_deferral;

typedef struct ts_partitioner {
  const ts_graph *in;
  ts_graph *to;
  ts_shardings *shardings;
  ts_value_id *map; /* for copies of ops */
  ts_variant **of;  /* by value of `in`; the first is the variant that its op made */
  ts_scope *scope;
  ts_deferral deferral;
  const uint32_t *uses;
  const _Atomic bool *cancel;
  ts_shard_report *report;
} ts_partitioner;

static inline const ts_mesh *ts_part_mesh(const ts_partitioner *p) { return &p->in->mesh; }

/* ---- values.c ---- */
void ts_scope_init(ts_scope *scope, ts_region_id region);
/* Adds an op to the region that is being made. */
ts_status ts_part_add(ts_partitioner *p, ts_opcode code, const ts_value_id *operands, size_t count,
                      const ts_attrs *attrs, ts_value_id *out);
ts_status ts_part_add_variant(ts_partitioner *p, ts_value_id of, const ts_sharding *sharding, uint64_t partial,
                              ts_value_id value);
/* Makes the coordinates a parameter of a region. */
ts_status ts_part_need_coordinates(ts_partitioner *p, ts_scope *scope);
/* s64[]: a constant; (the index of a partition in its group over `axes`) * factor + addend; 0 * factor without axes. */
ts_status ts_part_number(ts_partitioner *p, int64_t value, ts_value_id *out);
ts_status ts_part_position(ts_partitioner *p, const ts_dims *axes, int64_t factor, int64_t addend, ts_value_id *out);
/* The parts of a value with the sharding `to`, as complete sums. */
ts_status ts_part_get(ts_partitioner *p, ts_value_id value, const ts_sharding *to, ts_value_id *out);
/* Bytes that a partition receives for that. */
int64_t ts_part_get_cost(const ts_partitioner *p, ts_value_id value, const ts_sharding *to);
/* The same from one sharding, with partial axes, to another. */
int64_t ts_part_cost(const ts_partitioner *p, const ts_sharding *from, uint64_t partial, const ts_sharding *to,
                     const ts_value *v);
/* The axes of a mask, in order. */
void ts_part_axes(uint64_t mask, ts_dims *out);

/* ---- ops whose parts are not made by the op alone: factors in ts_factors.moved are cut ---- */

/* An op with its assignment; operands are cut like that. */
typedef struct ts_split {
  ts_partitioner *p;
  const ts_op *op;
  const ts_factors *f;
  const ts_assignment *a;
  ts_value_id *operands;
} ts_split;

/* Adds the ops that make the parts of the results (moved.c); `out` gets the first one. */
ts_status ts_split_moved(const ts_split *s, ts_value_id *out);
/* Bytes that ts_split_moved moves, beyond the bytes of operands and of partial results. */
int64_t ts_split_moved_cost(const ts_partitioner *p, const ts_op *op, const ts_factors *f, const ts_assignment *a);
/* The axes that cut a dim of a tensor by a moved factor; none: rank 0. */
void ts_split_moved_axes(const ts_factors *f, const ts_assignment *a, int32_t tensor, int32_t dim, ts_dims *out);
/* The part's shape of a tensor. */
void ts_split_part(const ts_split *s, int32_t tensor, ts_shape *out);

/* Ops on neighbouring elements: slices, pads, reversals, concatenations, windows, convolutions (halo.c). */
ts_status ts_split_halo(const ts_split *s, ts_value_id *out);
int64_t ts_split_halo_cost(const ts_partitioner *p, const ts_op *op, const ts_factors *f, const ts_assignment *a);
/* Ops on indices: each partition takes or writes its own elements (masked.c). */
ts_status ts_split_masked(const ts_split *s, ts_value_id *out);
int64_t ts_split_masked_cost(const ts_partitioner *p, const ts_op *op, const ts_factors *f, const ts_assignment *a);

/* ---- building blocks (part_ops.c) ---- */
ts_status ts_part_binary(ts_partitioner *p, ts_opcode code, ts_value_id a, ts_value_id b, ts_value_id *out);
/* A constant of a value's shape, and of a type. */
ts_status ts_part_constant_like(ts_partitioner *p, ts_value_id like, ts_dtype dtype, ts_scalar value, ts_value_id *out);
/* An s64[] as a value of that shape. */
ts_status ts_part_spread(ts_partitioner *p, ts_value_id scalar, const ts_shape *shape, ts_value_id *out);
/* s64 of a shape: the index along a dim, plus an s64[]. */
ts_status ts_part_indices(ts_partitioner *p, const ts_shape *shape, int32_t dim, ts_value_id offset, ts_value_id *out);
/* u8: low <= x < high, of s64. */
ts_status ts_part_between(ts_partitioner *p, ts_value_id x, int64_t low, int64_t high, ts_value_id *out);
/* min(max(x, low), high), of s64. */
ts_status ts_part_clamp(ts_partitioner *p, ts_value_id x, int64_t low, int64_t high, ts_value_id *out);
ts_status ts_part_select(ts_partitioner *p, ts_value_id mask, ts_value_id yes, ts_value_id no, ts_value_id *out);
/* `size` elements of a dim from an index on; the index is an s64[] or a constant. */
ts_status ts_part_slice_at(ts_partitioner *p, ts_value_id x, int32_t dim, ts_value_id start, int64_t size,
                           ts_value_id *out);
ts_status ts_part_slice(ts_partitioner *p, ts_value_id x, int32_t dim, int64_t from, int64_t to, ts_value_id *out);

/* ---- control.c: loops and branches; partition.c: ops ---- */
ts_status ts_part_control(ts_partitioner *p, const ts_op *op);
ts_status ts_part_call(ts_partitioner *p, const ts_op *op);
ts_status ts_part_visit(ts_partitioner *p, ts_op_id id);
/* Visits the live ops of a region. */
ts_status ts_part_visit_ops(ts_partitioner *p, ts_region_id id);

/* ---- partial.c ---- */
ts_status ts_deferral_create(size_t values, ts_deferral *out);
void ts_deferral_free(ts_deferral *d);
/* Decides for a region with known shardings. */
void ts_deferral_find(ts_partitioner *p, ts_region_id region);
/* Makes an op on terms when that is possible and wanted; otherwise *out_done is false. */
ts_status ts_part_on_terms(ts_partitioner *p, const ts_op *op, const ts_factors *f, bool *out_done);
/* True when a partial result of an op may wait for its sum. */
bool ts_part_may_wait(const ts_graph *graph, const ts_op *op, const ts_factors *f, uint32_t result);

/* ---- partition.c ---- */
/* The axes that cut reduced factors, sorted. */
void ts_part_reduced_axes(const ts_factors *f, const ts_assignment *a, ts_dims *out);
/* Adds the op on its parts: `operands` are cut as the assignment says. */
ts_status ts_part_add_split(ts_partitioner *p, const ts_op *op, const ts_factors *f, const ts_assignment *a,
                            ts_value_id *operands, ts_value_id *out);

#endif
