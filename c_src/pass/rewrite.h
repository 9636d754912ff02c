/* Building a graph from another one, op by op, regions included. What passes are made
 * of. A rewrite belongs to one thread. */
#ifndef TS_PASS_REWRITE_H
#define TS_PASS_REWRITE_H

#include "ir/graph.h"
#include "pass/pass.h"

typedef struct ts_rewrite ts_rewrite;

struct ts_rewrite {
  const ts_graph *from;
  ts_graph *to;
  ts_value_id *map;     /* for each value of `from`, the one in `to` that stands for it: of the same type */
  const uint32_t *uses; /* of values of `from`; ops without any are passed over. NULL: all are visited */
  const ts_pass_options *options;
  void *context;
  /* Adds what stands for an op of `from` to region `target` of `to`, and sets the entries of its results. */
  ts_status (*visit)(ts_rewrite *rw, ts_op_id op, ts_region_id target);
  /* Called before the first op of a region; may be NULL. */
  ts_status (*enter)(ts_rewrite *rw, ts_region_id source, ts_region_id target);
};

/* Copies an op as it is; what its regions hold is visited. */
ts_status ts_rewrite_copy(ts_rewrite *rw, ts_op_id op, ts_region_id target);
/* Copies a region's parameters, visits its ops, sets its results. */
ts_status ts_rewrite_region(ts_rewrite *rw, ts_region_id source, ts_region_id *out);

/* Rewrites a whole graph: `rw` has `visit` and what that needs; from, to and map are set here. */
ts_status ts_rewrite_run(ts_rewrite *rw, const ts_graph *in, const ts_pass_options *options, ts_graph **out);

/* The counterparts of an op's operands: in `few` when they fit, else the caller frees them. */
#define TS_REWRITE_FEW 8
static inline ts_status ts_rewrite_operands(const ts_rewrite *rw, const ts_op *op, ts_value_id few[TS_REWRITE_FEW],
                                            ts_value_id **out) {
  *out = few;
  if (op->operand_count > TS_REWRITE_FEW) TS_TRY(TS_NEW_ARRAY(op->operand_count, out));
  for (uint32_t i = 0; i < op->operand_count; i++) (*out)[i] = rw->map[op->operands[i]];
  return TS_SUCCESS;
}

/* How often each value is used, by ops that matter for the results and by regions' results (dce.c). All ops are
 * pure; a while keeps every value that it carries. Caller frees with ts_free. */
ts_status ts_liveness_count(const ts_graph *graph, uint32_t **out);

/* Says that result 0 of `op` is `value` of the new graph. */
static inline ts_status ts_rewrite_set(ts_rewrite *rw, ts_op_id op, ts_value_id value) {
  rw->map[ts_graph_op(rw->from, op)->first_result] = value;
  return TS_SUCCESS;
}
/* The counterpart of an op's operand. */
static inline ts_value_id ts_rewrite_operand(const ts_rewrite *rw, const ts_op *op, uint32_t i) {
  return rw->map[op->operands[i]];
}

#endif
