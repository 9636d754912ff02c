#include "pass/vector_dot.h"

typedef struct operand_dims {
  const ts_dims *batch, *contract;
} operand_dims;

static bool is_ordered(const ts_dims *axes) {
  for (int32_t i = 0; i < axes->rank; i++)
    if (axes->dims[i] != i) return false;
  return true;
}

/* The operand with its batch dims first, then the contracted ones, each in the order of the attributes. */
static ts_status in_order(const ts_rule_call *c, ts_value_id value, operand_dims dims, ts_value_id *out) {
  ts_attrs attrs = {.axes = *dims.batch};
  for (int32_t i = 0; i < dims.contract->rank; i++) attrs.axes.dims[attrs.axes.rank++] = dims.contract->dims[i];
  *out = value;
  if (is_ordered(&attrs.axes)) return TS_SUCCESS;
  return ts_rules_add(c->rules, c->target, TS_OP_TRANSPOSE, (ts_values){&value, 1}, &attrs, out);
}

static ts_status converted(const ts_rule_call *c, ts_value_id value, ts_dtype type, ts_value_id *out) {
  *out = value;
  if (ts_graph_value(c->rules->to, value)->dtype == type) return TS_SUCCESS;
  return ts_rules_add(c->rules, c->target, TS_OP_CONVERT, (ts_values){&value, 1}, &(ts_attrs){.dtype = type}, out);
}

static ts_status add_sum(const ts_rule_call *c, const ts_value_id *x, ts_value_id *out) {
  const ts_attrs *a = c->op->attrs;
  ts_value_id product;
  TS_TRY(ts_rules_add(c->rules, c->target, TS_OP_MULTIPLY, (ts_values){x, 2}, &(ts_attrs){0}, &product));
  ts_attrs reduced = {0};
  for (int32_t i = 0; i < a->dot.lhs_contract.rank; i++)
    reduced.axes.dims[reduced.axes.rank++] = a->dot.lhs_batch.rank + i;
  return ts_rules_add(c->rules, c->target, TS_OP_REDUCE_SUM, (ts_values){&product, 1}, &reduced, out);
}

static ts_dims following(int64_t first, int32_t rank) {
  ts_dims out = {.rank = rank};
  for (int32_t i = 0; i < rank; i++) out.dims[i] = first + i;
  return out;
}

static ts_status add_dot(const ts_rule_call *c, const ts_value_id *x, ts_value_id *out) {
  const ts_attrs *a = c->op->attrs;
  const ts_dims batch = following(0, a->dot.lhs_batch.rank);
  const ts_dims contract = following(batch.rank, a->dot.lhs_contract.rank);
  const ts_attrs attrs = {
      .dot = {.lhs_contract = contract, .lhs_batch = batch, .rhs_contract = contract, .rhs_batch = batch}};
  return ts_rules_add(c->rules, c->target, TS_OP_DOT, (ts_values){x, 2}, &attrs, out);
}

static bool is_in_order(const ts_dims *batch, const ts_dims *contract) {
  for (int32_t i = 0; i < contract->rank; i++)
    if (contract->dims[i] != batch->rank + i) return false;
  return is_ordered(batch);
}

/* The types that kernel/vector_dot.c adds. */
static bool has_dots(ts_dtype type) { return type == TS_F32 || type == TS_F64 || type == TS_F16 || type == TS_BF16; }

static bool has_form(const ts_rule_call *c) {
  const ts_attrs *a = c->op->attrs;
  return has_dots(c->dtype) && is_in_order(&a->dot.lhs_batch, &a->dot.lhs_contract) &&
         is_in_order(&a->dot.rhs_batch, &a->dot.rhs_contract);
}

/* Half types are added in f32, and rounded once, at the end. */
ts_status ts_vector_dot(const ts_rule_call *c, ts_value_id *out) {
  if (!ts_graph_is_vector_dot(c->rules->to, c->op) || has_form(c)) return TS_SUCCESS;
  if (c->rules->probing) {
    c->rules->changes = true;
    return TS_SUCCESS;
  }
  const ts_attrs *a = c->op->attrs;
  const operand_dims dims[2] = {{&a->dot.lhs_batch, &a->dot.lhs_contract}, {&a->dot.rhs_batch, &a->dot.rhs_contract}};
  ts_value_id x[2], sum;
  for (int i = 0; i < 2; i++) TS_TRY(in_order(c, c->op->operands[i], dims[i], &x[i]));
  if (has_dots(c->dtype)) return add_dot(c, x, out);
  const ts_dtype type = ts_dtype_accumulator(c->dtype);
  for (int i = 0; i < 2; i++) TS_TRY(converted(c, x[i], type, &x[i]));
  TS_TRY(ts_dtype_is_float(type) ? add_dot(c, x, &sum) : add_sum(c, x, &sum));
  return converted(c, sum, c->dtype, out);
}

/* ---- convolutions of one tap ---- */

/* With at most so many features, vectors of points are faster than the tiles of a convolution: by 1.1 to 20. */
#define FEW_FEATURES 8

/* Convolutions convert 16-bit floats row by row; products have kernels of their own for them. */
static bool gains(const ts_rule_call *c) {
  if (c->dtype == TS_F16 || c->dtype == TS_BF16) return true;
  return (c->dtype == TS_F32 || c->dtype == TS_F64) && c->shape->dims[c->shape->rank - 1] <= FEW_FEATURES;
}

/* The kernel as a matrix of channels and features. */
static ts_status as_matrix(const ts_rule_call *c, ts_value_id kernel, ts_value_id *out) {
  const ts_shape *shape = ts_graph_value(c->rules->to, kernel)->shape;
  const ts_attrs attrs = {.shape = {.rank = 2, .dims = {shape->dims[shape->rank - 2], shape->dims[shape->rank - 1]}}};
  *out = kernel;
  if (shape->rank == 2) return TS_SUCCESS;
  return ts_rules_add(c->rules, c->target, TS_OP_RESHAPE, (ts_values){&kernel, 1}, &attrs, out);
}

ts_status ts_point_conv(const ts_rule_call *c, ts_value_id *out) {
  if (!ts_graph_is_point_conv(c->rules->to, c->op) || !gains(c)) return TS_SUCCESS;
  if (c->rules->probing) {
    c->rules->changes = true;
    return TS_SUCCESS;
  }
  ts_value_id operands[2] = {c->op->operands[0]};
  const ts_attrs attrs = {
      .dot = {.lhs_contract = {.rank = 1, .dims = {c->shape->rank - 1}}, .rhs_contract = {.rank = 1, .dims = {0}}}};
  TS_TRY(as_matrix(c, c->op->operands[1], &operands[1]));
  return ts_rules_add(c->rules, c->target, TS_OP_DOT, (ts_values){operands, 2}, &attrs, out);
}
