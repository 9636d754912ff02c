/* Ops whose results nobody needs go. */
#include "pass/rewrite.h"

static bool is_used(const uint32_t *uses, const ts_op *op) {
  for (uint32_t i = 0; i < op->result_count; i++) {
    if (uses[op->first_result + i]) return true;
  }
  return false;
}

/* From the last op to the first: users come before what they use. */
static void count_region(const ts_graph *graph, ts_region_id id, uint32_t *uses) {
  const ts_region *region = ts_graph_region(graph, id);
  ts_region_id inner[2];
  for (size_t i = 0; i < region->results.count; i++) uses[region->results.data[i]]++;
  for (size_t i = region->ops.count; i-- > 0;) {
    const ts_op *op = ts_graph_op(graph, region->ops.data[i]);
    if (!is_used(uses, op)) continue;
    for (uint32_t k = 0; k < op->operand_count; k++) uses[op->operands[k]]++;
    if (!ts_op_has_regions(op->code)) continue;
    size_t count = ts_op_regions(op, inner);
    for (size_t k = 0; k < count; k++) count_region(graph, inner[k], uses);
  }
}

ts_status ts_liveness_count(const ts_graph *graph, uint32_t **out) {
  TS_TRY(TS_NEW_ARRAY(graph->values.count, out));
  count_region(graph, TS_ROOT, *out);
  return TS_SUCCESS;
}

ts_status ts_pass_dce(const ts_graph *in, const ts_pass_options *options, ts_graph **out) {
  uint32_t *uses;
  *out = NULL;
  TS_TRY(ts_liveness_count(in, &uses));
  ts_rewrite rw = {.visit = ts_rewrite_copy, .uses = uses};
  ts_status status = ts_rewrite_run(&rw, in, options, out);
  ts_free(uses);
  return status;
}
