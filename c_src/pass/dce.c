/* Dead code elimination, by use counts. */
#include "base/deep.h"
#include "pass/rewrite.h"

typedef struct counter {
  const ts_graph *graph;
  uint32_t *uses;
  ts_must_stay must_stay;
} counter;

static bool is_live(const counter *c, const ts_op *op) {
  for (uint32_t i = 0; i < op->result_count; i++) {
    if (c->uses[op->first_result + i]) return true;
  }
  return c->must_stay(c->graph, op);
}

/* Visits ops from the last to the first, so that all uses of a value are counted before its definition is met. */
static void count_region(const counter *c, ts_region_id id) {
  const ts_region *region = ts_graph_region(c->graph, id);
  ts_region_id inner[2];
  for (size_t i = 0; i < region->results.count; i++) c->uses[region->results.data[i]]++;
  for (size_t i = region->ops.count; i-- > 0;) {
    const ts_op *op = ts_graph_op(c->graph, region->ops.data[i]);
    if (!is_live(c, op)) continue;
    for (uint32_t k = 0; k < op->operand_count; k++) c->uses[op->operands[k]]++;
    if (!ts_op_has_regions(op->code)) continue;
    size_t count = ts_op_regions(op, inner);
    for (size_t k = 0; k < count; k++) count_region(c, inner[k]);
  }
}

static ts_status count_on_stack(void *context) {
  count_region(context, TS_ROOT);
  return TS_SUCCESS;
}

ts_status ts_liveness_count_but(const ts_graph *graph, ts_must_stay must_stay, uint32_t **out) {
  TS_TRY(TS_NEW_ARRAY(graph->values.count, out));
  counter c = {graph, *out, must_stay};
  ts_status status = ts_deep_call(ts_graph_region(graph, TS_ROOT)->height, count_on_stack, &c);
  if (!status) return TS_SUCCESS;
  ts_free(*out);
  *out = NULL;
  return status;
}

ts_status ts_liveness_count(const ts_graph *graph, uint32_t **out) {
  return ts_liveness_count_but(graph, ts_graph_has_effect, out);
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
