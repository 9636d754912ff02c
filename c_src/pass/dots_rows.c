/* A transpose that moves the rows of a product, after elementwise ops whose other operands are broadcast, such as a
 * bias, moves them in the product's left operand instead where that has fewer elements, or is a transpose itself. The
 * ops are an epilogue of the product then. Each sum has the same terms in the same order, so no bit changes. */
#include "pass/dots_rows.h"

static const ts_op *maker(const ts_graph *g, ts_value_id value) {
  const ts_op_id op = ts_graph_value(g, value)->op;
  return op == TS_NO_ID ? NULL : ts_graph_op(g, op);
}

static bool is_spread(const ts_graph *g, ts_value_id value) {
  const ts_op *op = maker(g, value);
  return op && (op->code == TS_OP_BROADCAST || op->code == TS_OP_CONSTANT);
}

/* The operand that is not broadcast; TS_NO_ID if there is not one. */
static ts_value_id only_operand(const ts_graph *g, const ts_op *op) {
  ts_value_id out = TS_NO_ID;
  for (uint32_t i = 0; i < op->operand_count; i++) {
    if (is_spread(g, op->operands[i])) continue;
    if (out != TS_NO_ID) return TS_NO_ID;
    out = op->operands[i];
  }
  return out;
}

/* Finds the product and the ops after it, which nothing else reads. */
static bool find_product(const ts_graph *g, const uint32_t *uses, const ts_op *transpose, ts_dots_rows *out) {
  ts_value_id value = transpose->operands[0];
  for (out->count = 0; value != TS_NO_ID; out->count++) {
    const ts_op *op = maker(g, value);
    if (!op || (uses && uses[value] != 1) || ts_dtype_is_complex(ts_graph_value(g, value)->dtype)) return false;
    out->dot = op;
    if (op->code == TS_OP_DOT) return !ts_graph_is_vector_dot(g, op);
    if (!ts_op_is_elementwise(op->code) || op->operand_count > TS_REWRITE_FEW || out->count == TS_DOTS_ROWS_OPS)
      return false;
    out->ops[out->count] = op;
    value = only_operand(g, op);
  }
  return false;
}

static bool moves_only_rows(const ts_dims *axes, const ts_dots_rows *m) {
  for (int32_t i = 0; i < axes->rank; i++)
    if ((i < m->batch || i >= m->batch + m->rows) && axes->dims[i] != i) return false;
  return true;
}

/* True where the broadcasts' dims stay in order. */
static bool keeps_broadcasts(const ts_graph *g, const ts_dims *axes, const ts_dots_rows *m) {
  int64_t place[TS_MAX_RANK];
  for (int32_t i = 0; i < axes->rank; i++) place[axes->dims[i]] = i;
  for (int n = 0; n < m->count; n++)
    for (uint32_t i = 0; i < m->ops[n]->operand_count; i++) {
      const ts_op *op = maker(g, m->ops[n]->operands[i]);
      if (!op || op->code != TS_OP_BROADCAST) continue;
      const ts_dims *from = &op->attrs->broadcast.axes;
      for (int32_t d = 1; d < from->rank; d++)
        if (place[from->dims[d]] < place[from->dims[d - 1]]) return false;
    }
  return true;
}

/* The axes of the transpose of the left operand. */
static ts_dims lhs_axes(const ts_graph *g, const ts_dims *axes, const ts_dots_rows *m) {
  const ts_dims *batch = &m->dot->attrs->dot.lhs_batch, *terms = &m->dot->attrs->dot.lhs_contract;
  const int32_t rank = ts_graph_value(g, m->dot->operands[0])->shape->rank;
  ts_dims free = {0}, out = {.rank = rank};
  bool is_free[TS_MAX_RANK];
  for (int32_t d = 0; d < rank; d++) is_free[d] = true;
  for (int32_t i = 0; i < batch->rank; i++) is_free[batch->dims[i]] = false;
  for (int32_t i = 0; i < terms->rank; i++) is_free[terms->dims[i]] = false;
  for (int32_t d = 0; d < rank; d++) {
    out.dims[d] = d;
    if (is_free[d]) free.dims[free.rank++] = d;
  }
  for (int32_t i = 0; i < free.rank; i++) out.dims[free.dims[i]] = free.dims[axes->dims[m->batch + i] - m->batch];
  return out;
}

/* True when the left operand is the opposite transpose. */
static bool is_undone(const ts_graph *g, const ts_dots_rows *m) {
  const ts_op *inner = maker(g, m->dot->operands[0]);
  if (!inner || inner->code != TS_OP_TRANSPOSE) return false;
  for (int32_t i = 0; i < m->lhs_axes.rank; i++)
    if (inner->attrs->axes.dims[m->lhs_axes.dims[i]] != i) return false;
  return true;
}

bool ts_dots_rows_find(const ts_graph *g, const uint32_t *uses, const ts_op *transpose, ts_dots_rows *out) {
  const ts_dims *axes = &transpose->attrs->axes;
  if (!find_product(g, uses, transpose, out)) return false;
  const ts_value *lhs = ts_graph_value(g, out->dot->operands[0]);
  out->batch = out->dot->attrs->dot.lhs_batch.rank;
  out->rows = lhs->shape->rank - out->batch - out->dot->attrs->dot.lhs_contract.rank;
  if (!moves_only_rows(axes, out) || !keeps_broadcasts(g, axes, out)) return false;
  out->lhs_axes = lhs_axes(g, axes, out);
  /* A transpose right after the product may become part of the op that reads the transpose. */
  const bool is_shorter =
      ts_shape_elements(lhs->shape) < ts_shape_elements(ts_graph_value(g, transpose->operands[0])->shape);
  return is_undone(g, out) || (out->count > 0 && is_shorter);
}

/* ---- the ops with moved rows ---- */

static ts_shape moved_shape(const ts_shape *shape, const ts_dims *axes) {
  ts_shape out = {.rank = shape->rank};
  for (int32_t d = 0; d < shape->rank; d++) out.dims[d] = shape->dims[axes->dims[d]];
  return out;
}

/* The counterpart of a value that is broadcast. */
static ts_status move_spread(ts_rewrite *rw, ts_rules *rules, ts_region_id target, const ts_dims *axes,
                             ts_value_id value, ts_value_id *out) {
  const ts_op *op = maker(rw->from, value);
  const ts_value *v = ts_graph_value(rw->from, value);
  const ts_shape shape = moved_shape(v->shape, axes);
  ts_attrs attrs = {.broadcast = {.shape = shape}};
  if (op->code == TS_OP_CONSTANT)
    return ts_rules_constant(rules, target, v->dtype, &shape, op->attrs->constant.value, out);
  attrs.broadcast.axes.rank = op->attrs->broadcast.axes.rank;
  for (int32_t i = 0; i < attrs.broadcast.axes.rank; i++)
    for (int32_t d = 0; d < axes->rank; d++)
      if (axes->dims[d] == op->attrs->broadcast.axes.dims[i]) attrs.broadcast.axes.dims[i] = d;
  const ts_value_id source = ts_rewrite_operand(rw, op, 0);
  return ts_rules_add(rules, target, TS_OP_BROADCAST, (ts_values){&source, 1}, &attrs, out);
}

static ts_status move_op(ts_rewrite *rw, ts_rules *rules, ts_region_id target, const ts_dims *axes, const ts_op *op,
                         ts_value_id *inout) {
  ts_value_id operands[TS_REWRITE_FEW];
  for (uint32_t i = 0; i < op->operand_count; i++) {
    operands[i] = *inout;
    if (is_spread(rw->from, op->operands[i]))
      TS_TRY(move_spread(rw, rules, target, axes, op->operands[i], &operands[i]));
  }
  return ts_rules_add(rules, target, op->code, (ts_values){operands, op->operand_count}, op->attrs, inout);
}

ts_status ts_dots_rows_finish(ts_rewrite *rw, ts_rules *rules, ts_op_id id, ts_region_id target,
                              const ts_dots_rows *rows, ts_value_id product) {
  const ts_dims *axes = &ts_graph_op(rw->from, id)->attrs->axes;
  for (int i = rows->count - 1; i >= 0; i--) TS_TRY(move_op(rw, rules, target, axes, rows->ops[i], &product));
  return ts_rewrite_set(rw, id, product);
}
