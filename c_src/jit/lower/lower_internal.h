/* The shared part of lowering. Internal to jit/. */
#ifndef TS_JIT_LOWER_INTERNAL_H
#define TS_JIT_LOWER_INTERNAL_H

#include "jit/lower/lower.h"

/* The lowering of one op. The launches' parts live in the arena. */
typedef struct ts_lowering {
  const ts_graph *graph;
  const ts_op *op;
  ts_arena *arena;
  TS_VEC(ts_launch) launches;
  TS_VEC(int64_t) temps; /* bytes of each */
  bool in_place;         /* as in ts_lower_options */
  bool by_blocks;        /* the launches belong to one reduction by blocks: it reads each element once */
} ts_lowering;

/* Adds one kernel launch for a loop nest whose reduced loops are one (lower_launch.c). */
ts_status ts_lowering_add_launch(ts_lowering *l, const ts_nest *nest);
/* For any loop nest: reductions that are too long, or not over one affine row, take several launches
 * (lower_reduce.c). */
ts_status ts_lowering_add_nest(ts_lowering *l, ts_nest *nest);
/* True where reading the load's elements into a copy pays. A search among narrow integers often ends early. */
bool ts_lowering_is_worth_copy(const ts_nest *nest, const ts_access *load, const ts_nest_node *reduce);
/* The kept loop along which the elements of the load with the most of them lie next to each other, if these are enough
 * for vectors; -1: there is none. */
int32_t ts_lowering_find_columns(const ts_nest *nest);
/* Adds a temporary shared by the launches; `out` is its index. */
ts_status ts_lowering_add_temp(ts_lowering *l, int64_t bytes, uint32_t *out);
/* Sets units, points and scratch from the description and the extents in `args`. */
void ts_launch_measure(ts_launch *launch);

#endif
