/* Ops whose results nobody needs go. All ops are pure, so that is all there is to it; a while keeps every value
 * that it carries. */
#include "pass/rewrite.h"

/* Entries of values that are needed. */
typedef struct liveness {
  const ts_graph *graph;
  bool *live;
} liveness;

static bool op_is_live(const liveness *l, const ts_op *op) {
  for (uint32_t i = 0; i < op->result_count; i++) {
    if (l->live[op->first_result + i]) return true;
  }
  return false;
}

/* From the last op to the first: users come before what they use. */
static void mark_region(const liveness *l, ts_region_id id) {
  const ts_region *region = ts_graph_region(l->graph, id);
  ts_region_id inner[2];
  for (size_t i = 0; i < region->results.count; i++) l->live[region->results.data[i]] = true;
  for (size_t i = region->ops.count; i-- > 0;) {
    const ts_op *op = ts_graph_op(l->graph, region->ops.data[i]);
    if (!op_is_live(l, op)) continue;
    for (uint32_t k = 0; k < op->operand_count; k++) l->live[op->operands[k]] = true;
    size_t count = ts_op_regions(op, inner);
    for (size_t k = 0; k < count; k++) mark_region(l, inner[k]);
  }
}

static ts_status visit(ts_rewrite *rw, ts_op_id id, ts_region_id target) {
  return op_is_live(rw->context, ts_graph_op(rw->from, id)) ? ts_rewrite_copy(rw, id, target) : TS_SUCCESS;
}

ts_status ts_pass_dce(const ts_graph *in, const ts_pass_options *options, ts_graph **out) {
  liveness l = {.graph = in};
  ts_rewrite rw = {.visit = visit, .context = &l};
  *out = NULL;
  TS_TRY(TS_NEW_ARRAY(in->values.count, &l.live));
  mark_region(&l, TS_ROOT);
  ts_status status = ts_rewrite_run(&rw, in, options, out);
  ts_free(l.live);
  return status;
}
