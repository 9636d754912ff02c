/* Finds a sharding for every value of a program. The table is made and read by one thread; it owns the shardings, and
 * interns them: equal shardings are one object. */
#ifndef TS_SHARD_PROPAGATE_H
#define TS_SHARD_PROPAGATE_H

#include "shard/factors.h"

#include <stdatomic.h>

typedef struct ts_shardings {
  ts_arena arena;
  TS_VEC(const ts_sharding *) distinct;
  const ts_sharding *whole; /* replicated */
  const ts_sharding **of;   /* by value */
  bool *closed;             /* by value: given, so it does not change */
  uint32_t changes;         /* how many there were */
  uint32_t *changed;        /* by value: the number of its last change; 0: never */
  ts_factors **rules;       /* by op, of the regions that were visited; NULL: none */
  const ts_mesh *mesh;
} ts_shardings;

/* True for loops, branches and calls whose regions are partitioned; deeper ones are replicated. */
#define TS_SHARD_LEVELS 16
static inline bool ts_shardings_are_inside(const ts_graph *graph, const ts_op *op) {
  return (op->code == TS_OP_WHILE || op->code == TS_OP_COND || op->code == TS_OP_CALL) &&
         ts_op_height(graph, op) <= TS_SHARD_LEVELS;
}

/* The rule of an op of a region that was visited; NULL if the op has no rule. */
static inline const ts_factors *ts_shardings_rule(const ts_shardings *s, ts_op_id op) { return s->rules[op]; }

/* Arguments and constrained values keep the given sharding, and results with a sharding begin with it. In three rounds
 * of growing scope, each to a fixpoint, shardings move along factors in both directions. They only grow, so this
 * ends. */
ts_status ts_shardings_find(const ts_graph *graph, const _Atomic bool *cancel, ts_shardings *out);
/* The same for a nested region whose parameters and results have shardings already. */
ts_status ts_shardings_give(ts_shardings *shardings, ts_value_id value, const ts_sharding *sharding, bool close);
ts_status ts_shardings_find_in(ts_shardings *shardings, const ts_graph *graph, ts_region_id region,
                               const _Atomic bool *cancel);
void ts_shardings_deinit(ts_shardings *shardings);
ts_status ts_shardings_intern(ts_shardings *shardings, const ts_sharding *sharding, const ts_sharding **out);

/* The mesh axes that cut each factor of an op. */
typedef struct ts_assignment {
  struct {
    uint8_t count;
    uint8_t axes[TS_MAX_MESH_AXES];
  } factors[TS_MAX_FACTORS];
} ts_assignment;

/* Joins the shardings of an op's tensors. Where they conflict, tensor `first` wins (none: -1), then the larger one. */
void ts_assignment_join(const ts_mesh *mesh, const ts_factors *f, const ts_sharding *const *tensors, int32_t first,
                        ts_assignment *out);
/* How an assignment cuts a tensor. */
void ts_assignment_sharding(const ts_factors *f, const ts_assignment *a, int32_t tensor, ts_sharding *out);

#endif
