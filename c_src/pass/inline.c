/* Calls become the ops of their regions. */
#include "pass/rewrite.h"

static ts_status visit(ts_rewrite *rw, ts_op_id id, ts_region_id target) {
  const ts_op *op = ts_graph_op(rw->from, id);
  if (op->code != TS_OP_CALL) return ts_rewrite_copy(rw, id, target);
  const ts_region *body = ts_graph_region(rw->from, op->attrs->regions.regions[0]);
  for (size_t i = 0; i < body->params.count; i++) rw->map[body->params.data[i]] = rw->map[op->operands[i]];
  for (size_t i = 0; i < body->ops.count; i++) TS_TRY(visit(rw, body->ops.data[i], target));
  for (uint32_t i = 0; i < op->result_count; i++) rw->map[op->first_result + i] = rw->map[body->results.data[i]];
  return TS_SUCCESS;
}

ts_status ts_pass_inline(const ts_graph *in, const ts_pass_options *options, ts_graph **out) {
  ts_rewrite rw = {.visit = visit};
  return ts_rewrite_run(&rw, in, options, out);
}
