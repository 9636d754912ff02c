/* Quantised numbers: integers that stand for (integer - zero point) * scale. An op that only moves elements moves the
 * integers. A product of matrices and a convolution are sums of products of integers, without rounding. Each other op
 * is computed of the numbers, and its results become integers: x / scale + zero point, half to even, and no further
 * than the type's ends. That is what StableHLO says. */
#include "stablehlo/make.h"

#include <string.h>

static bool is_any_of(mlir_token name, const char *const *names) {
  for (; *names; names++)
    if (mlir_token_is(name, *names)) return true;
  return false;
}

/* They hand values on, and a constant is written as integers. */
static bool hands_on(mlir_token name) {
  static const char *const names[] = {"call",
                                      "func.call",
                                      "stablehlo.composite",
                                      "stablehlo.while",
                                      "stablehlo.case",
                                      "stablehlo.if",
                                      "stablehlo.optimization_barrier",
                                      "stablehlo.bitcast_convert",
                                      "stablehlo.constant",
                                      "stablehlo.tuple",
                                      "stablehlo.get_tuple_element",
                                      "sdy.sharding_constraint",
                                      NULL};
  return is_any_of(name, names);
}

static bool only_moves(mlir_token name) {
  static const char *const names[] = {"stablehlo.reshape",
                                      "stablehlo.broadcast",
                                      "stablehlo.broadcast_in_dim",
                                      "stablehlo.transpose",
                                      "stablehlo.reverse",
                                      "stablehlo.slice",
                                      "stablehlo.pad",
                                      "stablehlo.concatenate",
                                      "stablehlo.gather",
                                      "stablehlo.dynamic_slice",
                                      "stablehlo.dynamic_update_slice",
                                      "stablehlo.dynamic_reshape",
                                      "stablehlo.dynamic_broadcast_in_dim",
                                      "stablehlo.dynamic_gather",
                                      "stablehlo.dynamic_pad",
                                      "stablehlo.real_dynamic_slice",
                                      "stablehlo.select",
                                      NULL};
  return is_any_of(name, names);
}

static bool is_contraction(mlir_token name) {
  static const char *const names[] = {"stablehlo.dot_general", "stablehlo.dot", "stablehlo.convolution", NULL};
  return is_any_of(name, names);
}

bool make_is_quantized(const make_call *m) {
  bool any = false;
  for (size_t i = 0; i < m->op->operand_count; i++) any = any || m->operands[i].quant;
  for (size_t i = 0; i < m->op->types.count; i++) any = any || m->op->types.data[i].quant;
  return any && !hands_on(m->op->name);
}

/* ---- integers and numbers */

/* The scales or zero points, for each element of a value. */
static ts_status spread(const make_call *m, const mlir_quant *quant, bool is_scale, ts_value_id like,
                        ts_value_id *out) {
  const ts_value value = *make_value_of(m, like);
  const ts_shape line = {.rank = 1, .dims = {(int64_t)quant->count}};
  const ts_dims axes = {.rank = 1, .dims = {quant->axis}};
  ts_attrs attrs = {0};
  if (quant->count == 1)
    return is_scale ? make_number(m, like, quant->scales[0], out)
                    : make_number(m, like, (double)quant->zero_points[0], out);
  TS_TRY(ts_buffer_create(ts_pool_default(), value.dtype, &line, &attrs.literal.buffer));
  for (size_t i = 0; i < quant->count; i++)
    ts_scalar_store(value.dtype,
                    ts_scalar_from_f64(value.dtype, is_scale ? quant->scales[i] : (double)quant->zero_points[i]),
                    (char *)attrs.literal.buffer->data + i * ts_dtype_size(value.dtype));
  ts_status status = make_add(m, TS_OP_LITERAL, (ts_values){0}, &attrs, out);
  ts_buffer_release(attrs.literal.buffer);
  TS_TRY(status);
  return make_broadcast(m, *out, value.shape, &axes, out);
}

/* The type that numbers are computed in. */
static ts_dtype computed(const mlir_quant *quant) {
  return ts_dtype_bits(quant->expressed) < 32 ? TS_F32 : quant->expressed;
}

/* Without their zero points: integers of 32 bits, or of 64. */
static ts_status distances(const make_call *m, const make_value *value, ts_value_id *out) {
  ts_value_id point;
  const ts_dtype wide = ts_dtype_bits(make_value_of(m, value->id)->dtype) < 32 ? TS_S32 : TS_S64;
  TS_TRY(make_convert(m, value->id, wide, out));
  TS_TRY(spread(m, value->quant, false, *out, &point));
  return make_binary(m, TS_OP_SUBTRACT, *out, point, out);
}

static ts_status numbers(const make_call *m, const make_value *value, ts_value_id *out) {
  ts_value_id scale;
  TS_TRY(distances(m, value, out));
  TS_TRY(make_convert(m, *out, computed(value->quant), out));
  TS_TRY(spread(m, value->quant, true, *out, &scale));
  TS_TRY(make_binary(m, TS_OP_MULTIPLY, *out, scale, out));
  return make_convert(m, *out, value->quant->expressed, out);
}

/* Numbers that are integers after rounding, as integers of a type. */
static ts_status rounded(const make_call *m, ts_value_id x, const mlir_type *type, ts_value_id *out) {
  ts_value_id low, high;
  TS_TRY(make_number(m, x, (double)type->quant->low, &low));
  TS_TRY(make_number(m, x, (double)type->quant->high, &high));
  TS_TRY(make_add(m, TS_OP_CLAMP, (ts_values){(ts_value_id[]){x, low, high}, 3}, NULL, &x));
  TS_TRY(make_round_even(m, x, &x));
  return make_convert(m, x, type->dtype, out);
}

static ts_status integers(const make_call *m, ts_value_id x, const mlir_type *type, ts_value_id *out) {
  ts_value_id scale, point;
  TS_TRY(make_convert(m, x, computed(type->quant), &x));
  TS_TRY(spread(m, type->quant, true, x, &scale));
  TS_TRY(make_binary(m, TS_OP_DIVIDE, x, scale, &x));
  TS_TRY(spread(m, type->quant, false, x, &point));
  TS_TRY(make_binary(m, TS_OP_ADD, x, point, &x));
  return rounded(m, x, type, out);
}

/* ---- ops */

/* The op with other operands and with results of other types; `type_of` says which. */
typedef struct other_op {
  mlir_op op;
  make_call call;
  make_value *operands;
} other_op;

static ts_status begin(const make_call *m, other_op *out) {
  out->op = *m->op;
  out->call = *m;
  out->call.op = &out->op;
  TS_TRY(ts_arena_copy(&m->r->arena, m->op->types.data, m->op->types.count * sizeof *m->op->types.data,
                       (void **)&out->op.types.data));
  TS_TRY(ts_arena_copy(&m->r->arena, m->operands, (m->op->operand_count + 1) * sizeof *m->operands,
                       (void **)&out->operands));
  out->call.operands = out->operands;
  for (size_t i = 0; i < m->op->operand_count; i++) out->operands[i].quant = NULL;
  for (size_t i = 0; i < m->op->types.count; i++) out->op.types.data[i].quant = NULL;
  return TS_SUCCESS;
}

static ts_status finish(const make_call *m, make_fn make, other_op *other) {
  TS_TRY(make(&other->call));
  for (size_t i = 0; i < m->op->types.count; i++) {
    const mlir_type *type = &m->op->types.data[i];
    if (type->quant && m->results[i].id != TS_NO_ID) TS_TRY(integers(m, m->results[i].id, type, &m->results[i].id));
  }
  return TS_SUCCESS;
}

static ts_status by_numbers(const make_call *m, make_fn make) {
  other_op other;
  TS_TRY(begin(m, &other));
  for (size_t i = 0; i < m->op->operand_count; i++)
    if (m->operands[i].quant) TS_TRY(numbers(m, &m->operands[i], &other.operands[i].id));
  for (size_t i = 0; i < m->op->types.count; i++)
    if (m->op->types.data[i].quant) other.op.types.data[i].dtype = m->op->types.data[i].quant->expressed;
  return finish(m, make, &other);
}

static bool are_equal(const mlir_quant *a, const mlir_quant *b) {
  return a->expressed == b->expressed && a->count == b->count && a->low == b->low && a->high == b->high &&
         memcmp(a->scales, b->scales, a->count * sizeof *a->scales) == 0 &&
         memcmp(a->zero_points, b->zero_points, a->count * sizeof *a->zero_points) == 0;
}

/* Whether all quantised operands and results have the same integers for the same numbers. */
static bool are_alike(const make_call *m) {
  const mlir_quant *first = m->op->types.count ? m->op->types.data[0].quant : NULL;
  bool alike = first != NULL;
  for (size_t i = 0; i < m->op->types.count && alike; i++)
    alike = m->op->types.data[i].quant && are_equal(first, m->op->types.data[i].quant);
  for (size_t i = 0; i < m->op->operand_count && alike; i++)
    if (m->operands[i].quant)
      alike = are_equal(first, m->operands[i].quant);
    else
      alike = ts_dtype_is_integer(make_operand_of(m, i)->dtype); /* an index or a condition */
  return alike;
}

static int64_t elements_before(const ts_shape *shape, int32_t axis) {
  int64_t count = 1;
  for (int32_t d = 0; d < axis; d++) count *= shape->dims[d];
  return count;
}

/* Whether each element stays with its scale. Scales of one dim belong to its indices: the op must keep this dim whole
 * and in order, and the result must have its scales along it. */
static ts_status keeps_scales(const make_call *m, bool *out) {
  const mlir_type *type = m->op->types.data;
  const mlir_quant *from = m->operands[0].quant, *to = type->quant;
  ts_dims axes;
  *out = to->count == 1;
  if (*out || m->op->operand_count == 0 || !from) return TS_SUCCESS;
  if (mlir_token_is(m->op->name, "stablehlo.transpose")) {
    TS_TRY(make_attr_ints(m, "dims|permutation", &axes));
    *out = to->axis < axes.rank && axes.dims[to->axis] == from->axis;
  } else if (mlir_token_is(m->op->name, "stablehlo.broadcast_in_dim")) {
    TS_TRY(make_attr_ints(m, "dims|broadcast_dimensions", &axes));
    *out = from->axis < axes.rank && axes.dims[from->axis] == to->axis;
  } else if (mlir_token_is(m->op->name, "stablehlo.reshape")) {
    *out = elements_before(make_operand_of(m, 0)->shape, from->axis) == elements_before(type->shape, to->axis);
  }
  return TS_SUCCESS;
}

/* Sums of products of integers, whose scale is the product of both. */
static bool has_plain_scales(const make_call *m) {
  const mlir_type *type = m->op->types.data;
  return m->op->operand_count == 2 && m->op->types.count == 1 && type->quant && type->quant->count == 1 &&
         m->operands[0].quant && m->operands[1].quant && m->operands[0].quant->count == 1 &&
         m->operands[1].quant->count == 1 && ts_dtype_bits(make_operand_of(m, 0)->dtype) < 32 &&
         ts_dtype_bits(make_operand_of(m, 1)->dtype) < 32;
}

static ts_status contraction(const make_call *m, make_fn make) {
  other_op other;
  ts_value_id x;
  const mlir_type *type = m->op->types.data;
  TS_TRY(begin(m, &other));
  for (size_t i = 0; i < 2; i++) TS_TRY(distances(m, &m->operands[i], &other.operands[i].id));
  other.op.types.data[0].dtype = TS_S32;
  TS_TRY(make(&other.call));
  if (m->results[0].id == TS_NO_ID) return TS_SUCCESS;
  x = m->results[0].id;
  const double scale = m->operands[0].quant->scales[0] * m->operands[1].quant->scales[0] / type->quant->scales[0];
  TS_TRY(make_convert(m, x, scale == 1 ? TS_F64 : computed(type->quant), &x));
  TS_TRY(make_with(m, TS_OP_MULTIPLY, x, scale, &x));
  TS_TRY(make_with(m, TS_OP_ADD, x, (double)type->quant->zero_points[0], &x));
  return rounded(m, x, type, &m->results[0].id);
}

/* Of numbers, or of integers of another type. */
static ts_status quantize(const make_call *m) {
  const mlir_type *type = m->op->types.data;
  ts_value_id x = m->operands[0].id;
  TS_TRY(make_count_operands(m, 1));
  if (!type->quant) return make_error(m, TS_INVALID_ARGUMENT, "its result has no quantised numbers");
  if (m->operands[0].quant && are_equal(m->operands[0].quant, type->quant) &&
      make_value_of(m, x)->dtype == type->dtype) {
    make_result(m, 0, x);
    return TS_SUCCESS;
  }
  if (m->operands[0].quant) TS_TRY(numbers(m, &m->operands[0], &x));
  if (!ts_dtype_is_float(make_value_of(m, x)->dtype)) return make_error(m, TS_INVALID_ARGUMENT, "expected floats");
  TS_TRY(integers(m, x, type, &x));
  make_result(m, 0, x);
  return TS_SUCCESS;
}

static ts_status dequantize(const make_call *m) {
  ts_value_id x;
  TS_TRY(make_count_operands(m, 1));
  if (!m->operands[0].quant) return make_error(m, TS_INVALID_ARGUMENT, "its operand has no quantised numbers");
  TS_TRY(numbers(m, &m->operands[0], &x));
  make_result(m, 0, x);
  return TS_SUCCESS;
}

/* An axis that an operand has scales for, and its type as written. */
static ts_status check_axes(const make_call *m) {
  for (size_t i = 0; i < m->op->operand_count; i++) {
    const mlir_quant *quant = m->operands[i].quant;
    const ts_shape *shape = make_operand_of(m, i)->shape;
    if (quant && quant->axis >= 0 && (quant->axis >= shape->rank || shape->dims[quant->axis] != (int64_t)quant->count))
      return make_error(m, TS_INVALID_ARGUMENT, "operand %zu has other than %zu scales", i, quant->count);
  }
  return TS_SUCCESS;
}

ts_status make_quantized(const make_call *m, make_fn make) {
  TS_TRY(check_axes(m));
  if (mlir_token_is(m->op->name, "stablehlo.uniform_quantize")) return quantize(m);
  if (mlir_token_is(m->op->name, "stablehlo.uniform_dequantize")) return dequantize(m);
  if (m->op->region_count) return make_error(m, TS_UNIMPLEMENTED, "of quantised numbers cannot be read");
  bool moves = only_moves(m->op->name) && are_alike(m);
  if (moves) TS_TRY(keeps_scales(m, &moves));
  if (moves) {
    other_op other;
    TS_TRY(begin(m, &other));
    return make(&other.call);
  }
  if (is_contraction(m->op->name) && has_plain_scales(m)) return contraction(m, make);
  return by_numbers(m, make);
}

ts_status make_in_quantize(const make_call *m) {
  return make_error(m, TS_INVALID_ARGUMENT, "neither its operand nor its result has quantised numbers");
}
