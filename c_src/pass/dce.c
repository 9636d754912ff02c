/* Dead code elimination, by use counts. */
#include "base/deep.h"
#include "pass/rewrite.h"

static bool is_live(const ts_graph *graph, const uint32_t *uses, const ts_op *op) {
  for (uint32_t i = 0; i < op->result_count; i++) {
    if (uses[op->first_result + i]) return true;
  }
  return ts_graph_has_effect(graph, op);
}

/* Visits ops from the last to the first, so that all uses of a value are counted before its definition is met. */
static void count_region(const ts_graph *graph, ts_region_id id, uint32_t *uses) {
  const ts_region *region = ts_graph_region(graph, id);
  ts_region_id inner[2];
  for (size_t i = 0; i < region->results.count; i++) uses[region->results.data[i]]++;
  for (size_t i = region->ops.count; i-- > 0;) {
    const ts_op *op = ts_graph_op(graph, region->ops.data[i]);
    if (!is_live(graph, uses, op)) continue;
    for (uint32_t k = 0; k < op->operand_count; k++) uses[op->operands[k]]++;
    if (!ts_op_has_regions(op->code)) continue;
    size_t count = ts_op_regions(op, inner);
    for (size_t k = 0; k < count; k++) count_region(graph, inner[k], uses);
  }
}

typedef struct count_call {
  const ts_graph *graph;
  uint32_t *uses;
} count_call;

static ts_status count_on_stack(void *context) {
  const count_call *c = context;
  count_region(c->graph, TS_ROOT, c->uses);
  return TS_SUCCESS;
}

ts_status ts_liveness_count(const ts_graph *graph, uint32_t **out) {
  TS_TRY(TS_NEW_ARRAY(graph->values.count, out));
  return ts_deep_call(ts_graph_region(graph, TS_ROOT)->height, count_on_stack, &(count_call){graph, *out});
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
