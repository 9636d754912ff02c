/* Ops on constants become constants. A splat stays one; other results become literals, up to a size. What may be
 * evaluated, and with which bits, is the evaluator's business. */
#include "pass/rewrite.h"

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

static bool may_fold(const ts_rewrite *rw, const ts_op *op) {
  ts_op_class class = ts_op_get_class(op->code);
  const ts_value *result = ts_graph_value(rw->from, op->first_result);
  int64_t limit = rw->options->fold_bytes ? rw->options->fold_bytes : DEFAULT_FOLD_BYTES;
  if (class == TS_CLASS_SOURCE || class == TS_CLASS_CONTROL || op->code == TS_OP_REDUCE || op->operand_count == 0)
    return false;
  for (uint32_t i = 0; i < op->operand_count; i++) {
    ts_value_id operand = ts_rewrite_operand(rw, op, i);
    const ts_value *v = ts_graph_value(rw->to, operand);
    if (!is_known(rw->to, operand) || ts_shape_bytes(&v->shape, v->dtype) > limit) return false;
  }
  return ts_shape_bytes(&result->shape, result->dtype) <= limit;
}

static bool is_splat_op(const ts_rewrite *rw, const ts_op *op) {
  if (!ts_op_is_elementwise(op->code)) return false;
  for (uint32_t i = 0; i < op->operand_count; i++) {
    if (!is_splat(rw->to, ts_rewrite_operand(rw, op, i))) return false;
  }
  return true;
}

/* A known operand in a graph of its own; of a splat only the scalar when `scalar`. */
static ts_status copy_operand(const ts_rewrite *rw, ts_graph *g, ts_value_id operand, bool scalar, ts_value_id *out) {
  const ts_op *op = ts_graph_op(rw->to, ts_graph_value(rw->to, operand)->op);
  ts_attrs attrs = *op->attrs;
  if (scalar) attrs.constant.shape = (ts_shape){0};
  return ts_graph_add_op(g, TS_ROOT, op->code, NULL, 0, &attrs, out);
}

static ts_status fill_closed(const ts_rewrite *rw, const ts_op *op, bool scalar, ts_graph *g) {
  ts_value_id *operands, result;
  TS_TRY(TS_NEW_ARRAY(op->operand_count, &operands));
  ts_status status = TS_SUCCESS;
  for (uint32_t i = 0; !status && i < op->operand_count; i++)
    status = copy_operand(rw, g, ts_rewrite_operand(rw, op, i), scalar, &operands[i]);
  if (!status) status = ts_graph_add_op(g, TS_ROOT, op->code, operands, op->operand_count, op->attrs, &result);
  if (!status) status = ts_graph_set_results(g, TS_ROOT, &result, 1);
  ts_free(operands);
  return status;
}

/* `*out` is NULL when the evaluator declines. */
static ts_status evaluate(const ts_rewrite *rw, const ts_op *op, bool scalar, ts_buffer **out) {
  ts_graph *g;
  *out = NULL;
  TS_TRY(ts_graph_create(&g));
  ts_status status = fill_closed(rw, op, scalar, g);
  if (!status) status = rw->options->evaluate(rw->options->context, g, out);
  ts_graph_destroy(g);
  if (ts_status_code(status) != TS_UNIMPLEMENTED) return status;
  ts_status_free(status);
  *out = NULL;
  return TS_SUCCESS;
}

static ts_status visit(ts_rewrite *rw, ts_op_id id, ts_region_id target) {
  const ts_op *op = ts_graph_op(rw->from, id);
  ts_buffer *buffer;
  ts_value_id result;
  ts_status status;
  if (!rw->options->evaluate || !may_fold(rw, op)) return ts_rewrite_copy(rw, id, target);
  bool splat = is_splat_op(rw, op);
  TS_TRY(evaluate(rw, op, splat, &buffer));
  if (!buffer) return ts_rewrite_copy(rw, id, target);
  if (splat) {
    const ts_value *v = ts_graph_value(rw->from, op->first_result);
    ts_scalar value = ts_scalar_load(buffer->dtype, buffer->data);
    status = ts_graph_constant(rw->to, target, v->dtype, &v->shape, value, &result);
  } else {
    ts_attrs attrs = {.literal = {.buffer = buffer}};
    status = ts_graph_add_op(rw->to, target, TS_OP_LITERAL, NULL, 0, &attrs, &result);
  }
  ts_buffer_release(buffer);
  return status ? status : ts_rewrite_set(rw, id, result);
}

ts_status ts_pass_fold(const ts_graph *in, const ts_pass_options *options, ts_graph **out) {
  ts_rewrite rw = {.visit = visit};
  return ts_rewrite_run(&rw, in, options, out);
}
