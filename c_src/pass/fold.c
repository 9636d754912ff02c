/* Constant folding. A splat (a constant of equal elements) stays one; other results become literals, up to a size. The
 * evaluator chooses the ops that it evaluates, and must give the bits of a run. */
#include "pass/rules.h"

enum { DEFAULT_FOLD_BYTES = 64 << 10 };

static bool is_known(const ts_graph *g, ts_value_id value) {
  ts_op_id op = ts_graph_value(g, value)->op;
  if (op == TS_NO_ID) return false;
  ts_opcode code = ts_graph_op(g, op)->code;
  return code == TS_OP_CONSTANT || code == TS_OP_LITERAL;
}

static bool is_splat(const ts_graph *g, ts_value_id value) {
  ts_scalar scalar;
  return ts_graph_is_constant(g, value, &scalar);
}

static bool may_fold(const ts_rule_call *call) {
  const ts_op *op = call->op;
  const ts_graph *g = call->rules->to;
  const ts_pass_options *options = call->rules->options;
  int64_t limit = options->fold_bytes ? options->fold_bytes : DEFAULT_FOLD_BYTES;
  if (!options->evaluate || op->operand_count == 0 || op->code == TS_OP_REDUCE) return false;
  for (uint32_t i = 0; i < op->operand_count; i++) {
    const ts_value *v = ts_graph_value(g, op->operands[i]);
    if (!is_known(g, op->operands[i]) || ts_shape_bytes(v->shape, v->dtype) > limit) return false;
  }
  for (uint32_t i = 0; i < op->result_count; i++) {
    if (ts_shape_bytes(call->results[i].shape, call->results[i].dtype) > limit) return false;
  }
  return true;
}

static bool is_splat_op(const ts_rule_call *call) {
  if (!ts_op_is_elementwise(call->op->code)) return false;
  for (uint32_t i = 0; i < call->op->operand_count; i++) {
    if (!is_splat(call->rules->to, call->op->operands[i])) return false;
  }
  return true;
}

/* Copies a known operand into the evaluator's graph; with `scalar` only the element of a splat. */
static ts_status copy_operand(const ts_graph *from, ts_graph *g, ts_value_id operand, bool scalar, ts_value_id *out) {
  const ts_op *op = ts_graph_op(from, ts_graph_value(from, operand)->op);
  ts_attrs attrs = ts_op_copy_attrs(op);
  if (scalar) attrs.constant.shape = (ts_shape){0};
  return ts_graph_add_op(g, TS_ROOT, op->code, (ts_values){0}, &attrs, out);
}

static ts_status fill_closed(const ts_rule_call *call, bool scalar, ts_graph *g) {
  const ts_op *op = call->op;
  ts_value_id *operands, results[TS_MAX_RESULTS];
  TS_TRY(TS_NEW_ARRAY(op->operand_count, &operands));
  ts_status status = TS_SUCCESS;
  for (uint32_t i = 0; !status && i < op->operand_count; i++)
    status = copy_operand(call->rules->to, g, op->operands[i], scalar, &operands[i]);
  if (!status)
    status = ts_graph_add_op(g, TS_ROOT, op->code, (ts_values){operands, op->operand_count}, op->attrs, results);
  for (uint32_t i = 1; !status && i < op->result_count; i++) results[i] = results[0] + i;
  if (!status) status = ts_graph_set_results(g, TS_ROOT, results, op->result_count);
  ts_free(operands);
  return status;
}

/* A buffer for each result; `*out` is NULL when the evaluator declines. */
static ts_status evaluate(const ts_rule_call *call, bool scalar, ts_buffer **out) {
  const ts_pass_options *options = call->rules->options;
  ts_graph *g;
  *out = NULL;
  TS_TRY(ts_graph_create(&g));
  ts_status status = fill_closed(call, scalar, g);
  if (!status) status = options->evaluate(options->context, g, out);
  ts_graph_destroy(g);
  if (ts_status_code(status) != TS_UNIMPLEMENTED) return status;
  ts_status_free(status);
  *out = NULL;
  return TS_SUCCESS;
}

static ts_status add_splat(const ts_rule_call *call, const ts_buffer *buffer, ts_value_id *out) {
  ts_scalar value = ts_scalar_load(buffer->dtype, buffer->data);
  return ts_rules_constant(call->rules, call->target, call->dtype, call->shape, value, out);
}

static ts_status add_literal(const ts_rule_call *call, ts_buffer *buffer, ts_value_id *out) {
  ts_attrs attrs = {.literal = {.buffer = buffer}};
  return ts_rules_add(call->rules, call->target, TS_OP_LITERAL, (ts_values){0}, &attrs, out);
}

ts_status ts_fold(const ts_rule_call *call, ts_value_id *out) {
  ts_buffer *buffers[TS_MAX_RESULTS];
  ts_status status = TS_SUCCESS;
  if (!may_fold(call)) return TS_SUCCESS;
  if (call->rules->probing) {
    call->rules->changes = true;
    return TS_SUCCESS;
  }
  bool splat = is_splat_op(call);
  TS_TRY(evaluate(call, splat, buffers));
  if (!buffers[0]) return TS_SUCCESS;
  for (uint32_t i = 0; !status && i < call->op->result_count; i++)
    status = splat ? add_splat(call, buffers[i], &out[i]) : add_literal(call, buffers[i], &out[i]);
  for (uint32_t i = 0; i < call->op->result_count; i++) ts_buffer_release(buffers[i]);
  return status;
}
