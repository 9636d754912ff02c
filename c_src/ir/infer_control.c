/* Inference of the ops that hold regions: the types of a region's parameters and results must agree with the op's
 * operands and results. */
#include "ir/infer.h"

static ts_status get_region(const ts_infer_call *call, const char *role, ts_region_id id, const ts_region **out) {
  if (id == TS_ROOT || id >= call->graph->regions.count)
    return ts_infer_error(call, "expected a region as its %s", role);
  *out = ts_graph_region(call->graph, id);
  if (!(*out)->finished) return ts_infer_error(call, "the %s has no results yet, expected a finished region", role);
  return TS_SUCCESS;
}

static bool same_type(const ts_value *a, const ts_value *b) {
  return a->dtype == b->dtype && ts_shape_equal(a->shape, b->shape);
}

/* The values have equal types. `role` and `what` are for the message. */
static ts_status check_values(const ts_infer_call *call, const char *role, const char *what, ts_values actual,
                              ts_values expected) {
  if (actual.count != expected.count)
    return ts_infer_error(call, "the %s has %zu %ss, expected %zu", role, actual.count, what, expected.count);
  for (size_t i = 0; i < actual.count; i++) {
    const ts_value *a = ts_graph_value(call->graph, actual.data[i]);
    const ts_value *e = ts_graph_value(call->graph, expected.data[i]);
    if (!same_type(a, e))
      return ts_infer_error(call, "%s %zu of the %s is %s, expected %s", what, i, role,
                            TS_SHAPE_STR(a->dtype, a->shape), TS_SHAPE_STR(e->dtype, e->shape));
  }
  return TS_SUCCESS;
}

static ts_status check_params(const ts_infer_call *call, const char *role, const ts_region *region,
                              size_t first_operand) {
  if (call->count < first_operand) return ts_infer_error(call, "expected at least %zu operands", first_operand);
  const ts_value_id *operands = call->count ? call->operands + first_operand : NULL; /* NULL + 0 is undefined */
  return check_values(call, role, "parameter", (ts_values){region->params.data, region->params.count},
                      (ts_values){operands, call->count - first_operand});
}

/* The op's results are the region's. */
static ts_status give_results(const ts_infer_call *call, const ts_region *region, size_t max_results,
                              ts_type *out_types, size_t *out_count) {
  size_t count = region->results.count;
  if (count == 0) return ts_infer_error(call, "the region has no results, expected at least one");
  if (count > max_results) return ts_error(TS_INTERNAL, "%s: no room for %zu results", ts_op_name(call->code), count);
  for (size_t i = 0; i < count; i++) {
    const ts_value *value = ts_graph_value(call->graph, region->results.data[i]);
    ts_type_set(&out_types[i], value->dtype, value->shape);
  }
  *out_count = count;
  return TS_SUCCESS;
}

static ts_status infer_while(const ts_infer_call *call, size_t max_results, ts_type *out_types, size_t *out_count) {
  const ts_region *condition = NULL, *body = NULL;
  TS_TRY(get_region(call, "condition", call->attrs->regions.regions[0], &condition));
  TS_TRY(get_region(call, "body", call->attrs->regions.regions[1], &body));
  TS_TRY(check_params(call, "condition", condition, 0));
  TS_TRY(check_params(call, "body", body, 0));
  TS_TRY(check_values(call, "body", "result", (ts_values){body->results.data, body->results.count},
                      (ts_values){call->operands, call->count}));
  if (condition->results.count != 1)
    return ts_infer_error(call, "the condition has %zu results, expected 1", condition->results.count);
  const ts_value *decision = ts_graph_value(call->graph, condition->results.data[0]);
  if (decision->dtype != TS_U8 || decision->shape->rank != 0)
    return ts_infer_error(call, "the condition gives %s, expected u8[]",
                          TS_SHAPE_STR(decision->dtype, decision->shape));
  return give_results(call, body, max_results, out_types, out_count);
}

static ts_status infer_cond(const ts_infer_call *call, size_t max_results, ts_type *out_types, size_t *out_count) {
  const ts_region *on_true = NULL, *on_false = NULL;
  const ts_value *predicate = ts_infer_operand(call, 0);
  if (predicate->dtype != TS_U8 || predicate->shape->rank != 0)
    return ts_infer_error(call, "expected a predicate u8[]");
  TS_TRY(get_region(call, "true branch", call->attrs->regions.regions[0], &on_true));
  TS_TRY(get_region(call, "false branch", call->attrs->regions.regions[1], &on_false));
  TS_TRY(check_params(call, "true branch", on_true, 1));
  TS_TRY(check_params(call, "false branch", on_false, 1));
  TS_TRY(check_values(call, "false branch", "result", (ts_values){on_false->results.data, on_false->results.count},
                      (ts_values){on_true->results.data, on_true->results.count}));
  return give_results(call, on_true, max_results, out_types, out_count);
}

static ts_status infer_call(const ts_infer_call *call, ts_region_id id, size_t max_results, ts_type *out_types,
                            size_t *out_count) {
  const ts_region *body = NULL;
  TS_TRY(get_region(call, "body", id, &body));
  TS_TRY(check_params(call, "body", body, 0));
  return give_results(call, body, max_results, out_types, out_count);
}

static ts_status infer_types(const ts_infer_call *call, ts_region_id id, size_t max_results, ts_type *out_types,
                             size_t *out_count) {
  const ts_region *types = NULL;
  TS_TRY(get_region(call, "region of types", id, &types));
  if (types->params.count > 0)
    return ts_infer_error(call, "the region of types has %zu parameters, expected none", types->params.count);
  if (types->has_effect) return ts_infer_error(call, "the region of types calls back");
  return give_results(call, types, max_results, out_types, out_count);
}

/* The call's text stands between quotation marks in one line of a program's text. kernel/custom.c reads it. */
static ts_status infer_custom(const ts_infer_call *call, size_t max_results, ts_type *out_types, size_t *out_count) {
  const ts_buffer *text = call->attrs->custom.call;
  if (!text || text->dtype != TS_U8 || text->shape.rank != 1 || text->bytes == 0)
    return ts_infer_error(call, "expected the text of a call as u8[n]");
  for (int64_t i = 0; i < text->bytes; i++) {
    uint8_t c = ((const uint8_t *)text->data)[i];
    if (c < ' ' || c == '"') return ts_infer_error(call, "the call's text has the character %u", c);
  }
  return infer_types(call, call->attrs->custom.types, max_results, out_types, out_count);
}

ts_status ts_infer_control(const ts_infer_call *call, size_t max_results, ts_type *out_types, size_t *out_count) {
  switch ((ts_ops_CONTROL)call->code) {
  case TS_OP_WHILE: return infer_while(call, max_results, out_types, out_count);
  case TS_OP_COND: return infer_cond(call, max_results, out_types, out_count);
  case TS_OP_CALL: return infer_call(call, call->attrs->regions.regions[0], max_results, out_types, out_count);
  case TS_OP_FUSION: return infer_call(call, call->attrs->fusion.region, max_results, out_types, out_count);
  case TS_OP_CALLBACK: return infer_types(call, call->attrs->callback.types, max_results, out_types, out_count);
  case TS_OP_CUSTOM_CALL: return infer_custom(call, max_results, out_types, out_count);
  }
  return ts_infer_unknown(call);
}

/* (acc, x) -> acc, all of them scalars of the operand's type; so is the initial value. */
ts_status ts_infer_reduce_region(const ts_infer_call *call) {
  const ts_region *region = NULL;
  const ts_value *init = ts_infer_operand(call, 1);
  const ts_value_id scalars[2] = {call->operands[1], call->operands[1]};
  TS_TRY(ts_infer_same_dtype(call));
  if (init->shape->rank != 0) return ts_infer_error(call, "expected a scalar initial value");
  TS_TRY(get_region(call, "combiner", call->attrs->reduce.region, &region));
  if (region->has_effect) return ts_infer_error(call, "the combiner calls back or has a collective");
  TS_TRY(check_values(call, "combiner", "parameter", (ts_values){region->params.data, region->params.count},
                      (ts_values){scalars, 2}));
  return check_values(call, "combiner", "result", (ts_values){region->results.data, region->results.count},
                      (ts_values){scalars, 1});
}
