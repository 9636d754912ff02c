/* Builds a graph from another one, op by op, with nested regions: the framework of the passes. A rewrite belongs to one
 * thread. */
#ifndef TS_PASS_REWRITE_H
#define TS_PASS_REWRITE_H

#include "ir/graph.h"
#include "pass/pass.h"

typedef struct ts_rewrite ts_rewrite;

struct ts_rewrite {
  const ts_graph *from;
  ts_graph *to;
  ts_value_id *map;     /* for each value of `from`, its counterpart in `to`, of the same type */
  const uint32_t *uses; /* use counts of the values of `from`; ops with none are left out. NULL: all are visited */
  const ts_pass_options *options;
  void *context;
  /* Adds the counterpart of an op of `from` to region `target` of `to`, and sets the map's entries for its results. */
  ts_status (*visit)(ts_rewrite *rw, ts_op_id op, ts_region_id target);
  /* Called before the first op of a region; may be NULL. */
  ts_status (*enter)(ts_rewrite *rw, ts_region_id source, ts_region_id target);
};

/* Copies an op unchanged; its regions are visited. */
ts_status ts_rewrite_copy(ts_rewrite *rw, ts_op_id op, ts_region_id target);
/* Visits an op. What is added meanwhile has its place. */
static inline ts_status ts_rewrite_visit(ts_rewrite *rw, ts_op_id op, ts_region_id target) {
  ts_place outer = rw->to->place;
  rw->to->place = ts_graph_op(rw->from, op)->place;
  ts_status status = rw->visit(rw, op, target);
  rw->to->place = outer;
  return status;
}
/* Copies a region's parameters, visits its ops, sets its results. */
ts_status ts_rewrite_region(ts_rewrite *rw, ts_region_id source, ts_region_id *out);

/* Rewrites a whole graph. The caller sets `visit` and its context; this sets from, to and map. */
ts_status ts_rewrite_run(ts_rewrite *rw, const ts_graph *in, const ts_pass_options *options, ts_graph **out);

/* The counterparts of an op's operands: in `few` when they fit, else in memory that the caller frees. */
#define TS_REWRITE_FEW 8
static inline ts_status ts_rewrite_operands(const ts_rewrite *rw, const ts_op *op, ts_value_id few[TS_REWRITE_FEW],
                                            ts_value_id **out) {
  *out = few;
  if (op->operand_count > TS_REWRITE_FEW) TS_TRY(TS_NEW_ARRAY(op->operand_count, out));
  for (uint32_t i = 0; i < op->operand_count; i++) (*out)[i] = rw->map[op->operands[i]];
  return TS_SUCCESS;
}

/* Counts the uses of each value by live ops and by regions' results (dce.c). An op with effects is live; a while keeps
 * all of its loop variables alive. The caller frees with ts_free. */
ts_status ts_liveness_count(const ts_graph *graph, uint32_t **out);
/* The same with another rule for ops that are live without uses. */
typedef bool (*ts_must_stay)(const ts_graph *graph, const ts_op *op);
ts_status ts_liveness_count_but(const ts_graph *graph, ts_must_stay must_stay, uint32_t **out);

/* Makes `value` of the new graph the counterpart of result 0 of `op`. */
static inline ts_status ts_rewrite_set(ts_rewrite *rw, ts_op_id op, ts_value_id value) {
  rw->map[ts_graph_op(rw->from, op)->first_result] = value;
  return TS_SUCCESS;
}
/* The counterpart of an op's operand. */
static inline ts_value_id ts_rewrite_operand(const ts_rewrite *rw, const ts_op *op, uint32_t i) {
  return rw->map[op->operands[i]];
}

#endif
