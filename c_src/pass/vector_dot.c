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

static bool has_free_dims(const ts_rule_call *c, const ts_attrs *a) {
  const ts_graph *g = c->rules->to;
  const int32_t lhs = ts_graph_value(g, c->op->operands[0])->shape->rank;
  const int32_t rhs = ts_graph_value(g, c->op->operands[1])->shape->rank;
  return lhs > a->dot.lhs_batch.rank + a->dot.lhs_contract.rank ||
         rhs > a->dot.rhs_batch.rank + a->dot.rhs_contract.rank;
}

/* Half types are multiplied, exactly, and summed in f32. */
ts_status ts_vector_dot(const ts_rule_call *c, ts_value_id *out) {
  if (c->op->code != TS_OP_DOT || has_free_dims(c, c->op->attrs)) return TS_SUCCESS;
  if (c->rules->probing) {
    c->rules->changes = true;
    return TS_SUCCESS;
  }
  const ts_attrs *a = c->op->attrs;
  const operand_dims dims[2] = {{&a->dot.lhs_batch, &a->dot.lhs_contract}, {&a->dot.rhs_batch, &a->dot.rhs_contract}};
  const ts_dtype type = ts_dtype_accumulator(c->dtype);
  ts_value_id x[2], product, sum;
  for (int i = 0; i < 2; i++) {
    TS_TRY(in_order(c, c->op->operands[i], dims[i], &x[i]));
    TS_TRY(converted(c, x[i], type, &x[i]));
  }
  TS_TRY(ts_rules_add(c->rules, c->target, TS_OP_MULTIPLY, (ts_values){x, 2}, &(ts_attrs){0}, &product));
  ts_attrs reduced = {0};
  for (int32_t i = 0; i < a->dot.lhs_contract.rank; i++)
    reduced.axes.dims[reduced.axes.rank++] = a->dot.lhs_batch.rank + i;
  TS_TRY(ts_rules_add(c->rules, c->target, TS_OP_REDUCE_SUM, (ts_values){&product, 1}, &reduced, &sum));
  return converted(c, sum, c->dtype, out);
}
