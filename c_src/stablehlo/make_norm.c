/* batch_norm_training, batch_norm_inference and batch_norm_grad: means and variances of each feature. */
#include "stablehlo/make.h"

#include <math.h>

typedef struct norm {
  const make_call *m;
  ts_shape shape; /* of the operand */
  ts_dims axes;   /* all but the features' */
  int32_t feature;
  double epsilon, count;
} norm;

static ts_status op(const norm *n, ts_opcode code, ts_value_id x, ts_value_id y, ts_value_id *out) {
  return make_binary(n->m, code, x, y, out);
}

static ts_status sum(const norm *n, ts_value_id x, ts_value_id *out) {
  ts_attrs attrs = {0};
  ts_shape_copy(&attrs.axes, &n->axes);
  *out = x;
  return n->axes.rank ? make_add(n->m, TS_OP_REDUCE_SUM, (ts_values){&x, 1}, &attrs, out) : TS_SUCCESS;
}

/* A feature's number for each of its elements. */
static ts_status spread(const norm *n, ts_value_id x, ts_value_id *out) {
  return make_broadcast(n->m, x, &n->shape, &(ts_dims){.rank = 1, .dims = {n->feature}}, out);
}

static ts_status with(const norm *n, ts_opcode code, ts_value_id x, double y, ts_value_id *out) {
  return make_with(n->m, code, x, y, out);
}

static ts_status mean(const norm *n, ts_value_id x, ts_value_id *out) {
  TS_TRY(sum(n, x, out));
  return with(n, TS_OP_DIVIDE, *out, n->count, out);
}

/* x - mean, and sqrt(variance + epsilon), of the operand's shape. */
static ts_status centre(const norm *n, ts_value_id average, ts_value_id variance, ts_value_id *out,
                        ts_value_id *out_deviation) {
  TS_TRY(spread(n, average, &average));
  TS_TRY(op(n, TS_OP_SUBTRACT, n->m->operands[0].id, average, out));
  TS_TRY(with(n, TS_OP_ADD, variance, n->epsilon, &variance));
  TS_TRY(make_unary(n->m, TS_OP_SQRT, variance, &variance));
  return spread(n, variance, out_deviation);
}

/* scale * (x - mean) / deviation + offset */
static ts_status normalize(const norm *n, ts_value_id average, ts_value_id variance, ts_value_id *out) {
  ts_value_id deviation, scale, offset;
  TS_TRY(centre(n, average, variance, out, &deviation));
  TS_TRY(op(n, TS_OP_DIVIDE, *out, deviation, out));
  TS_TRY(spread(n, n->m->operands[1].id, &scale));
  TS_TRY(spread(n, n->m->operands[2].id, &offset));
  TS_TRY(op(n, TS_OP_MULTIPLY, *out, scale, out));
  return op(n, TS_OP_ADD, *out, offset, out);
}

static ts_status training(const norm *n) {
  ts_value_id average, variance, apart, id;
  TS_TRY(mean(n, n->m->operands[0].id, &average));
  TS_TRY(spread(n, average, &apart));
  TS_TRY(op(n, TS_OP_SUBTRACT, n->m->operands[0].id, apart, &apart));
  TS_TRY(op(n, TS_OP_MULTIPLY, apart, apart, &apart));
  TS_TRY(mean(n, apart, &variance));
  TS_TRY(normalize(n, average, variance, &id));
  make_result(n->m, 0, id);
  make_result(n->m, 1, average);
  make_result(n->m, 2, variance);
  return TS_SUCCESS;
}

static ts_status inference(const norm *n) {
  ts_value_id id;
  TS_TRY(normalize(n, n->m->operands[3].id, n->m->operands[4].id, &id));
  make_result(n->m, 0, id);
  return TS_SUCCESS;
}

/* With c = x - mean, v = variance + epsilon, g the result's gradient:
 * g - mean(g) - c * mean(g * c) / v, times scale / sqrt(v). */
static ts_status gradient(const norm *n) {
  ts_value_id g = n->m->operands[4].id, c, deviation, product, scale_grad, offset_grad, part, square, id;
  TS_TRY(centre(n, n->m->operands[2].id, n->m->operands[3].id, &c, &deviation));
  TS_TRY(op(n, TS_OP_MULTIPLY, g, c, &product));
  TS_TRY(op(n, TS_OP_DIVIDE, product, deviation, &scale_grad));
  TS_TRY(sum(n, scale_grad, &scale_grad));
  TS_TRY(sum(n, g, &offset_grad));
  TS_TRY(mean(n, g, &part));
  TS_TRY(spread(n, part, &part));
  TS_TRY(op(n, TS_OP_SUBTRACT, g, part, &id));
  TS_TRY(mean(n, product, &part));
  TS_TRY(spread(n, part, &part));
  TS_TRY(op(n, TS_OP_MULTIPLY, deviation, deviation, &square));
  TS_TRY(op(n, TS_OP_DIVIDE, part, square, &part));
  TS_TRY(op(n, TS_OP_MULTIPLY, c, part, &part));
  TS_TRY(op(n, TS_OP_SUBTRACT, id, part, &id));
  TS_TRY(spread(n, n->m->operands[1].id, &part));
  TS_TRY(op(n, TS_OP_DIVIDE, part, deviation, &part));
  TS_TRY(op(n, TS_OP_MULTIPLY, id, part, &id));
  make_result(n->m, 0, id);
  make_result(n->m, 1, scale_grad);
  make_result(n->m, 2, offset_grad);
  return TS_SUCCESS;
}

static ts_status check(norm *n, size_t operands, size_t results) {
  const make_call *m = n->m;
  const mlir_attr *epsilon = make_attr(m, "epsilon");
  int64_t feature;
  TS_TRY(make_count_operands(m, operands));
  if (m->op->types.count != results) return make_error(m, TS_INVALID_ARGUMENT, "expected %zu results", results);
  TS_TRY(make_attr_int(m, "feature_index", &feature));
  if (!epsilon || !mlir_attr_float(epsilon, &n->epsilon))
    return make_error(m, TS_INVALID_ARGUMENT, "expected the attribute epsilon");
  ts_shape_copy(&n->shape, make_operand_of(m, 0)->shape);
  if (feature < 0 || feature >= n->shape.rank)
    return make_error(m, TS_INVALID_ARGUMENT, "it has no dim %lld", (long long)feature);
  if (!ts_dtype_is_float(make_operand_of(m, 0)->dtype)) return make_error(m, TS_INVALID_ARGUMENT, "expected floats");
  n->feature = (int32_t)feature;
  n->count = 1;
  for (int32_t d = 0; d < n->shape.rank; d++) {
    if (d == feature) continue;
    n->axes.dims[n->axes.rank++] = d;
    n->count *= (double)n->shape.dims[d];
  }
  return TS_SUCCESS;
}

ts_status make_in_norm(const make_call *m) {
  norm n = {.m = m};
  if (mlir_token_is(m->op->name, "stablehlo.batch_norm_inference")) {
    TS_TRY(check(&n, 5, 1));
    return inference(&n);
  }
  if (mlir_token_is(m->op->name, "stablehlo.batch_norm_grad")) {
    TS_TRY(check(&n, 5, 3));
    return gradient(&n);
  }
  TS_TRY(check(&n, 3, 3));
  return training(&n);
}
