/* Joins all_reduces into one message where none waits for another: the gradients of a step are one. Ops are put out as
 * soon as their operands are there; all_reduces are held back until nothing else can be put out, and then those over
 * the same axes are one op. Leaves out dead ops. */
#include "ir/attrs.h"
#include "pass/rewrite.h"
#include "shard/shard.h"

typedef struct combiner {
  const ts_graph *in;
  ts_graph *to;
  ts_value_id *map; /* TS_NO_ID: not there yet */
  TS_VEC(ts_op_id) waiting, held;
} combiner;

static bool is_ready(const combiner *c, const ts_op *op) {
  for (uint32_t i = 0; i < op->operand_count; i++)
    if (c->map[op->operands[i]] == TS_NO_ID) return false;
  return true;
}

static bool is_combined(const ts_op *op) { return op->code >= TS_OP_ALL_REDUCE_SUM && op->code <= TS_OP_ALL_REDUCE_OR; }

/* One walk over the ops that wait. */
static ts_status put_out(combiner *c) {
  size_t kept = 0;
  for (size_t i = 0; i < c->waiting.count; i++) {
    ts_op_id id = c->waiting.data[i];
    const ts_op *op = ts_graph_op(c->in, id);
    if (!is_ready(c, op))
      c->waiting.data[kept++] = id;
    else if (is_combined(op))
      TS_TRY(TS_VEC_PUSH(&c->held, id));
    else
      TS_TRY(ts_graph_copy_op(c->in, id, c->to, TS_ROOT, c->map));
  }
  c->waiting.count = kept;
  return TS_SUCCESS;
}

static bool goes_with(const combiner *c, const ts_op *first, ts_op_id id) {
  const ts_op *op = ts_graph_op(c->in, id);
  return op->code == first->code && ts_attrs_equal(ts_op_attr_kind(op->code), op->attrs, first->attrs);
}

/* Fills `operands` from all held ops that go with the first one. */
static size_t collect(const combiner *c, const ts_op *first, ts_value_id *operands) {
  size_t count = 0;
  for (size_t i = 0; i < c->held.count; i++) {
    if (!goes_with(c, first, c->held.data[i])) continue;
    const ts_op *op = ts_graph_op(c->in, c->held.data[i]);
    for (uint32_t k = 0; k < op->operand_count; k++) {
      if (operands) operands[count] = c->map[op->operands[k]];
      count++;
    }
  }
  return count;
}

/* Gives the results to those ops, and drops them. */
static void distribute(combiner *c, const ts_op *first, ts_value_id results) {
  size_t kept = 0;
  for (size_t i = 0; i < c->held.count; i++) {
    ts_op_id id = c->held.data[i];
    const ts_op *op = ts_graph_op(c->in, id);
    bool taken = goes_with(c, first, id);
    for (uint32_t k = 0; taken && k < op->result_count; k++) c->map[op->first_result + k] = results++;
    if (!taken) c->held.data[kept++] = id;
  }
  c->held.count = kept;
}

static ts_status join_held(combiner *c) {
  const ts_op *first = ts_graph_op(c->in, c->held.data[0]);
  size_t count = collect(c, first, NULL);
  ts_value_id *operands, results;
  TS_TRY(TS_NEW_ARRAY(count, &operands));
  (void)collect(c, first, operands);
  ts_status status = ts_graph_add_op(c->to, TS_ROOT, first->code, operands, count, first->attrs, &results);
  ts_free(operands);
  if (!status) distribute(c, first, results);
  return status;
}

static ts_status schedule(combiner *c) {
  while (c->waiting.count > 0) {
    TS_TRY(put_out(c));
    if (c->held.count == 0 && c->waiting.count > 0) return ts_error(TS_INTERNAL, "combine: no op can be put out");
    while (c->held.count > 0) TS_TRY(join_held(c));
  }
  return TS_SUCCESS;
}

static bool is_live(const ts_graph *graph, const ts_op *op, const uint32_t *uses) {
  for (uint32_t i = 0; i < op->result_count; i++)
    if (uses[op->first_result + i]) return true;
  return ts_graph_has_effect(graph, op);
}

static ts_status start(combiner *c, const uint32_t *uses) {
  const ts_region *root = ts_graph_region(c->in, TS_ROOT);
  for (size_t i = 0; i < c->in->values.count; i++) c->map[i] = TS_NO_ID;
  TS_TRY(ts_graph_add_params_like(c->to, TS_ROOT, c->in, TS_ROOT, c->map));
  for (size_t i = 0; i < root->ops.count; i++)
    if (is_live(c->in, ts_graph_op(c->in, root->ops.data[i]), uses))
      TS_TRY(TS_VEC_PUSH(&c->waiting, root->ops.data[i]));
  return TS_SUCCESS;
}

static ts_status finish(combiner *c) {
  const ts_region *root = ts_graph_region(c->in, TS_ROOT);
  ts_value_id *results;
  TS_TRY(TS_NEW_ARRAY(root->results.count, &results));
  for (size_t i = 0; i < root->results.count; i++) results[i] = c->map[root->results.data[i]];
  ts_status status = ts_graph_set_results(c->to, TS_ROOT, results, root->results.count);
  ts_free(results);
  return status;
}

static ts_status build(combiner *c) {
  uint32_t *uses = NULL;
  TS_TRY(ts_graph_create_from(c->in, &c->to));
  TS_TRY(ts_graph_set_name(c->to, c->in->name));
  TS_TRY(TS_NEW_ARRAY(c->in->values.count, &c->map));
  TS_TRY(ts_liveness_count(c->in, &uses));
  ts_status status = start(c, uses);
  ts_free(uses);
  if (!status) status = schedule(c);
  return status ? status : finish(c);
}

ts_status ts_shard_combine(const ts_graph *in, ts_graph **out) {
  combiner c = {.in = in};
  ts_status status = build(&c);
  TS_VEC_FREE(&c.waiting);
  TS_VEC_FREE(&c.held);
  ts_free(c.map);
  if (status) {
    ts_graph_destroy(c.to);
    c.to = NULL;
  }
  *out = c.to;
  return status;
}
