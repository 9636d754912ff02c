/* quantized_dot in StableHLO: the weight is made by plain ops, and a dot_general reads it. */
#include "ir/stablehlo/stablehlo_internal.h"
#include "tensor/quantized.h"

static hlo_value broadcast(hlo *h, hlo_value x, const ts_shape *shape) {
  return hlo_op_with(h, "stablehlo.broadcast_in_dim", (hlo_type){x.element, shape}, (hlo_values){&x, 1},
                     "broadcast_dimensions = array<i64: 0, 1, 3>");
}

/* The first elements of each dim, as many as `shape` has. */
static hlo_value first_of(hlo *h, hlo_value x, const ts_shape *shape) {
  ts_dims start = {.rank = shape->rank}, step = {.rank = shape->rank};
  if (ts_shape_equal(&x.shape, shape)) return x;
  for (int32_t d = 0; d < shape->rank; d++) step.dims[d] = 1;
  return hlo_op_with(h, "stablehlo.slice", (hlo_type){x.element, shape}, (hlo_values){&x, 1},
                     "start_indices = %s, limit_indices = %s, strides = %s", HLO_ARRAY(&start), HLO_ARRAY(shape),
                     HLO_ARRAY(&step));
}

/* [panels, rows, columns] from [panels, rows / times, times, columns], of the first rows. */
static hlo_value join_rows(hlo *h, hlo_value x, const ts_shape *rows) {
  ts_shape all = *rows;
  all.dims[1] = x.shape.dims[1] * x.shape.dims[2];
  return first_of(h, hlo_reshape(h, x, &all), rows);
}

/* The integers, in f32. */
static hlo_value numbers(hlo *h, hlo_value words, int bits, const ts_shape *rows) {
  const int64_t each = 32 / bits;
  const ts_shape shape = {.rank = 4, .dims = {words.shape.dims[0], words.shape.dims[1], each, TS_QUANTIZED_COLS}};
  const hlo_value at =
      hlo_binary(h, "stablehlo.multiply", hlo_iota(h, TS_U32, &shape, 2), hlo_integer(h, TS_U32, &shape, bits));
  hlo_value q = hlo_binary(h, "stablehlo.shift_right_logical", broadcast(h, words, &shape), at);
  q = hlo_binary(h, "stablehlo.and", q, hlo_integer(h, TS_U32, &shape, (1 << bits) - 1));
  return join_rows(h, hlo_convert(h, q, TS_F32), rows);
}

/* Scales, zeros or minimums of each row, in f32. */
static hlo_value spread(hlo *h, hlo_value x, int64_t group, const ts_shape *rows) {
  const ts_shape shape = {.rank = 4, .dims = {x.shape.dims[0], x.shape.dims[1], group, TS_QUANTIZED_COLS}};
  return join_rows(h, broadcast(h, hlo_convert(h, x, TS_F32), &shape), rows);
}

static hlo_value weight(const hlo_call *call, const ts_shape *rows) {
  const ts_attrs *a = call->op->attrs;
  const int32_t form = a->quantized_dot.form, group = a->quantized_dot.group;
  hlo *h = call->h;
  const hlo_value q = numbers(h, hlo_operand(call, 1), a->quantized_dot.bits, rows);
  const hlo_value s = spread(h, hlo_operand(call, 2), group, rows);
  const ts_scalar middle = {.f32 = (float)(1 << (a->quantized_dot.bits - 1))};
  if (form == TS_QUANTIZED_MINIMUM)
    return hlo_binary(h, "stablehlo.subtract", hlo_binary(h, "stablehlo.multiply", q, s),
                      spread(h, hlo_operand(call, 3), group, rows));
  const hlo_value zero =
      form == TS_QUANTIZED_ZERO ? spread(h, hlo_operand(call, 3), group, rows) : hlo_constant(h, TS_F32, rows, middle);
  return hlo_binary(h, "stablehlo.multiply", hlo_binary(h, "stablehlo.subtract", q, zero), s);
}

/* [k, cols] */
static hlo_value matrix(const hlo_call *call, int64_t k) {
  const int64_t cols = call->op->attrs->quantized_dot.cols, panels = ts_quantized_panels(cols);
  const ts_shape rows = {.rank = 3, .dims = {panels, k, TS_QUANTIZED_COLS}};
  const ts_shape exchanged = {.rank = 3, .dims = {k, panels, TS_QUANTIZED_COLS}};
  const ts_shape all = {.rank = 2, .dims = {k, panels * TS_QUANTIZED_COLS}}, shape = {.rank = 2, .dims = {k, cols}};
  hlo *h = call->h;
  hlo_value w = hlo_convert(h, weight(call, &rows), call->element);
  w = hlo_op_with(h, "stablehlo.transpose", (hlo_type){w.element, &exchanged}, (hlo_values){&w, 1},
                  "permutation = array<i64: 1, 0, 2>");
  return first_of(h, hlo_reshape(h, w, &all), &shape);
}

ts_status hlo_quantized_dot(const hlo_call *call, hlo_value *out) {
  const hlo_value x = hlo_operand(call, 0);
  const int32_t last = x.shape.rank - 1;
  const hlo_value operands[] = {x, matrix(call, x.shape.dims[last])};
  const hlo_type type = {hlo_product_type(call), call->shape};
  const char *precision = hlo_precision(call->h, call->element);
  *out = hlo_op_with(call->h, "stablehlo.dot_general", type, (hlo_values){operands, 2},
                     "dot_dimension_numbers = #stablehlo.dot<lhs_batching_dimensions = [], rhs_batching_dimensions = "
                     "[], lhs_contracting_dimensions = [%d], rhs_contracting_dimensions = [0]>, "
                     "precision_config = [#stablehlo<precision %s>, #stablehlo<precision %s>]",
                     last, precision, precision);
  *out = hlo_convert(call->h, *out, call->element);
  return TS_SUCCESS;
}
