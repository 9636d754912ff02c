#include "ir/stablehlo/stablehlo.h"
#include "stablehlo/make.h"

#include <string.h>

/* ---- elementwise */

/* The op that the printer writes by that name; TS_OP_COUNT: none. Of ops that share a name the first is of floats, or
 * of bits. */
static ts_opcode find_elementwise(mlir_token name) {
  if (mlir_token_is(name, "stablehlo.tan")) return TS_OP_TAN; /* older versions have it in chlo, as the printer */
  if (mlir_token_is(name, "chlo.is_inf")) return TS_OP_IS_INFINITY;
  for (int code = 0; code < TS_OP_COUNT; code++) {
    const char *own = ts_stablehlo_name((ts_opcode)code);
    if (own && mlir_token_is(name, own)) return (ts_opcode)code;
  }
  return TS_OP_COUNT;
}

/* The op of booleans, 0 and 1; TS_OP_COUNT: it takes none. */
static ts_opcode of_bools(ts_opcode code) {
  static const ts_opcode rows[][2] = {{TS_OP_ADD, TS_OP_OR},  {TS_OP_MAX, TS_OP_OR},  {TS_OP_MULTIPLY, TS_OP_AND},
                                      {TS_OP_MIN, TS_OP_AND}, {TS_OP_AND, TS_OP_AND}, {TS_OP_OR, TS_OP_OR},
                                      {TS_OP_XOR, TS_OP_XOR}};
  for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
    if (rows[i][0] == code) return rows[i][1];
  return TS_OP_COUNT;
}

/* Of complex numbers the greater or the lesser has the greater or the lesser real part, then imaginary part. */
static ts_status complex_extreme(const make_call *m, ts_opcode code, ts_value_id *out) {
  const ts_opcode order = code == TS_OP_MAX ? TS_OP_GREATER : TS_OP_LESS;
  ts_value_id x[2], y[2], first, equal, second;
  for (int i = 0; i < 2; i++) {
    TS_TRY(make_unary(m, i ? TS_OP_IMAG : TS_OP_REAL, m->operands[0].id, &x[i]));
    TS_TRY(make_unary(m, i ? TS_OP_IMAG : TS_OP_REAL, m->operands[1].id, &y[i]));
  }
  TS_TRY(make_binary(m, order, x[0], y[0], &first));
  TS_TRY(make_binary(m, TS_OP_EQUAL, x[0], y[0], &equal));
  TS_TRY(make_binary(m, order, x[1], y[1], &second));
  TS_TRY(make_binary(m, TS_OP_AND, equal, second, &second));
  TS_TRY(make_binary(m, TS_OP_OR, first, second, &first));
  return make_select(m, first, m->operands[0].id, m->operands[1].id, out);
}

/* -i log((x + i y) / sqrt(x^2 + y^2)) */
static ts_status complex_atan2(const make_call *m, ts_value_id *out) {
  ts_value_id y = m->operands[0].id, x = m->operands[1].id, i, zero, one, sum, square;
  TS_TRY(make_unary(m, TS_OP_REAL, x, &zero));
  TS_TRY(make_number(m, zero, 1, &one));
  TS_TRY(make_number(m, zero, 0, &zero));
  TS_TRY(make_binary(m, TS_OP_COMPLEX, zero, one, &i));
  TS_TRY(make_binary(m, TS_OP_MULTIPLY, i, y, &sum));
  TS_TRY(make_binary(m, TS_OP_ADD, x, sum, &sum));
  TS_TRY(make_binary(m, TS_OP_MULTIPLY, x, x, &x));
  TS_TRY(make_binary(m, TS_OP_MULTIPLY, y, y, &y));
  TS_TRY(make_binary(m, TS_OP_ADD, x, y, &square));
  TS_TRY(make_unary(m, TS_OP_SQRT, square, &square));
  TS_TRY(make_binary(m, TS_OP_DIVIDE, sum, square, &sum));
  TS_TRY(make_unary(m, TS_OP_LOG, sum, &sum));
  TS_TRY(make_binary(m, TS_OP_MULTIPLY, i, sum, &sum));
  return make_unary(m, TS_OP_NEGATE, sum, out);
}

/* Ops that Tessera has of real numbers alone, or of complex ones alone. */
static ts_status of_other_numbers(const make_call *m, ts_opcode code, ts_value_id *out) {
  const bool is_complex = ts_dtype_is_complex(make_operand_of(m, 0)->dtype);
  *out = TS_NO_ID;
  if (is_complex && m->op->operand_count == 2 && make_operand_of(m, 1)->dtype != make_operand_of(m, 0)->dtype)
    return TS_SUCCESS;
  if (is_complex && (code == TS_OP_MAX || code == TS_OP_MIN)) return complex_extreme(m, code, out);
  if (is_complex && code == TS_OP_ATAN2) return complex_atan2(m, out);
  if (!is_complex && code == TS_OP_REAL) *out = m->operands[0].id;
  if (!is_complex && code == TS_OP_IMAG) return make_number(m, m->operands[0].id, 0, out);
  return TS_SUCCESS;
}

/* The op of truths that an op of booleans is. */
static ts_opcode logical_of(ts_opcode code) {
  static const ts_opcode rows[][2] = {
      {TS_OP_AND, TS_OP_LOGICAL_AND}, {TS_OP_OR, TS_OP_LOGICAL_OR}, {TS_OP_XOR, TS_OP_LOGICAL_XOR}};
  for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
    if (rows[i][0] == code) return rows[i][1];
  return TS_OP_COUNT;
}

/* Whether both operands say which numbers of one type are not 0. `out` gets these numbers. */
static bool is_logical(const make_call *m, ts_opcode code, ts_value_id out[2]) {
  if (logical_of(code) == TS_OP_COUNT) return false;
  for (int i = 0; i < 2; i++) {
    out[i] = make_truth_of(m, &m->operands[i], TS_DTYPE_NONE);
    if (out[i] == m->operands[i].id) return false;
  }
  return make_value_of(m, out[0])->dtype == make_value_of(m, out[1])->dtype;
}

static ts_status elementwise(const make_call *m) {
  ts_opcode code = find_elementwise(m->op->name);
  ts_value_id id, operands[2];
  const size_t count = (size_t)ts_op_operands(code);
  TS_TRY(make_count_operands(m, count));
  TS_TRY(of_other_numbers(m, code, &id));
  if (id != TS_NO_ID) {
    make_result(m, 0, id);
    return TS_SUCCESS;
  }
  if (is_logical(m, code, operands)) {
    TS_TRY(make_binary(m, logical_of(code), operands[0], operands[1], &id));
    make_result(m, 0, id);
    return TS_SUCCESS;
  }
  if (m->operands[0].is_bool) code = of_bools(code);
  if (code == TS_OP_COUNT) return make_error(m, TS_INVALID_ARGUMENT, "it takes no booleans");
  if (code == TS_OP_DIVIDE && ts_dtype_is_integer(make_operand_of(m, 0)->dtype)) code = TS_OP_QUOTIENT;
  for (size_t i = 0; i < count; i++) operands[i] = m->operands[i].id;
  TS_TRY(make_add(m, code, (ts_values){operands, count}, NULL, &id));
  make_result(m, 0, id);
  return TS_SUCCESS;
}

static ts_status not_op(const make_call *m) {
  ts_value_id id, x = m->operands[0].id;
  TS_TRY(make_count_operands(m, 1));
  TS_TRY(m->operands[0].is_bool ? make_with_integer(m, TS_OP_EQUAL, x, 0, &id) : make_unary(m, TS_OP_NOT, x, &id));
  make_result(m, 0, id);
  return TS_SUCCESS;
}

/* Numbers are shifted as those of a kind, whatever their type is. */
static ts_status shift_right_as(const make_call *m, ts_dtype_kind kind) {
  ts_value_id x, by;
  TS_TRY(make_count_operands(m, 2));
  const ts_dtype type = make_operand_of(m, 0)->dtype;
  const ts_dtype plain = ts_dtype_of_bits(kind, ts_dtype_bits(type));
  if (!ts_dtype_is_integer(type) || m->operands[0].is_bool || make_operand_of(m, 1)->dtype != type)
    return make_error(m, TS_INVALID_ARGUMENT, "expected integers of one type");
  TS_TRY(make_bitcast(m, m->operands[0].id, plain, &x));
  TS_TRY(make_bitcast(m, m->operands[1].id, plain, &by));
  TS_TRY(make_binary(m, TS_OP_SHIFT_RIGHT, x, by, &x));
  TS_TRY(make_bitcast(m, x, type, &x));
  make_result(m, 0, x);
  return TS_SUCCESS;
}

static ts_status shift_right_logical(const make_call *m) { return shift_right_as(m, TS_KIND_UNSIGNED); }

static ts_status shift_right_arithmetic(const make_call *m) { return shift_right_as(m, TS_KIND_SIGNED); }

static ts_status is_finite(const make_call *m) {
  ts_value_id x;
  TS_TRY(make_count_operands(m, 1));
  TS_TRY(make_unary(m, TS_OP_ABS, m->operands[0].id, &x));
  if (make_value_of(m, x)->dtype == TS_F8E4M3FN) /* it has no infinity, and NaN is not equal to itself */
    TS_TRY(make_binary(m, TS_OP_EQUAL, x, x, &x));
  else
    TS_TRY(make_with(m, TS_OP_LESS, x, __builtin_inf(), &x));
  make_result(m, 0, x);
  return TS_SUCCESS;
}

static ts_status round_nearest_even(const make_call *m) {
  ts_value_id id;
  TS_TRY(make_count_operands(m, 1));
  TS_TRY(make_round_even(m, m->operands[0].id, &id));
  make_result(m, 0, id);
  return TS_SUCCESS;
}

static ts_status compare(const make_call *m) {
  const mlir_attr *direction = make_attr(m, "comparison_direction"), *type = make_attr(m, "compare_type");
  ts_value_id id, keys[2];
  TS_TRY(make_count_operands(m, 2));
  if (!direction) direction = make_positional(m->op, 0);
  if (!type) type = make_positional(m->op, 1);
  if (!direction) return make_error(m, TS_INVALID_ARGUMENT, "expected the attribute comparison_direction");
  const bool total = type && mlir_token_is(type->token, "TOTALORDER");
  for (int i = 0; i < 2; i++) {
    keys[i] = m->operands[i].id;
    if (total) TS_TRY(make_total_key(m, keys[i], &keys[i]));
  }
  for (int code = 0; code < TS_OP_COUNT; code++) {
    const char *own = ts_stablehlo_direction((ts_opcode)code);
    if (!own || !mlir_token_is(direction->token, own)) continue;
    TS_TRY(make_binary(m, (ts_opcode)code, keys[0], keys[1], &id));
    make_result(m, 0, id);
    return TS_SUCCESS;
  }
  return mlir_error(TS_INVALID_ARGUMENT, direction->token, "expected EQ, NE, GT, GE, LT or LE");
}

static ts_status select_op(const make_call *m) {
  ts_value_id id;
  TS_TRY(make_count_operands(m, 3));
  TS_TRY(make_select(m, make_truth_of(m, &m->operands[0], TS_U8), m->operands[1].id, m->operands[2].id, &id));
  make_result(m, 0, id);
  return TS_SUCCESS;
}

static ts_status clamp(const make_call *m) {
  ts_value_id operands[3], id;
  TS_TRY(make_count_operands(m, 3));
  operands[0] = m->operands[1].id;
  for (int i = 0; i < 2; i++)
    TS_TRY(make_broadcast_to(m, m->operands[2 * i].id, make_operand_of(m, 1)->shape, &operands[1 + i]));
  TS_TRY(make_add(m, TS_OP_CLAMP, (ts_values){operands, 3}, NULL, &id));
  make_result(m, 0, id);
  return TS_SUCCESS;
}

static ts_status convert(const make_call *m) {
  ts_value_id id;
  TS_TRY(make_count_operands(m, 1));
  TS_TRY(make_to_type(m, &m->operands[0], &m->op->types.data[0], &id));
  make_result(m, 0, id);
  return TS_SUCCESS;
}

/* The unsigned type with the bits of an element. */
static ts_status bits_type(const make_call *m, ts_dtype type, ts_dtype *out) {
  *out = ts_dtype_of_bits(TS_KIND_UNSIGNED, ts_dtype_bits(type));
  return *out == TS_DTYPE_NONE ? make_error(m, TS_UNIMPLEMENTED, "of %s as of another size", ts_dtype_name(type))
                               : TS_SUCCESS;
}

/* Part k of a dim more: the k-th lowest bits of each element. */
static ts_status split_bits(const make_call *m, ts_dtype wide, int bits, ts_value_id *inout) {
  const int parts = ts_dtype_bits(wide) / bits;
  ts_value_id shifts;
  ts_shape shape;
  ts_shape_copy(&shape, make_value_of(m, *inout)->shape);
  if (shape.rank == TS_MAX_RANK) return make_error(m, TS_UNIMPLEMENTED, "its result has too many dims");
  shape.dims[shape.rank++] = 1;
  TS_TRY(make_reshape(m, *inout, &shape, inout));
  shape.dims[shape.rank - 1] = parts;
  TS_TRY(make_broadcast_to(m, *inout, &shape, inout));
  TS_TRY(make_iota(m, wide, &shape, shape.rank - 1, &shifts));
  TS_TRY(make_with_integer(m, TS_OP_MULTIPLY, shifts, bits, &shifts));
  TS_TRY(make_binary(m, TS_OP_SHIFT_RIGHT, *inout, shifts, inout));
  if (bits > 1) /* which keeps the low bits */
    return make_convert(m, *inout, ts_dtype_of_bits(TS_KIND_UNSIGNED, bits), inout);
  TS_TRY(make_with_integer(m, TS_OP_AND, *inout, 1, inout));
  return make_convert(m, *inout, TS_U8, inout);
}

/* The last dim's elements become the bits of one. */
static ts_status join_bits(const make_call *m, int bits, ts_dtype wide, ts_value_id *inout) {
  const int parts = ts_dtype_bits(wide) / bits;
  ts_value_id shifts;
  ts_attrs attrs = {0};
  const ts_shape *shape = make_value_of(m, *inout)->shape;
  if (shape->rank == 0 || shape->dims[shape->rank - 1] != parts)
    return make_error(m, TS_INVALID_ARGUMENT, "the last dim of its operand is not %d", parts);
  attrs.axes.rank = 1;
  attrs.axes.dims[0] = shape->rank - 1;
  TS_TRY(make_convert(m, *inout, wide, inout));
  shape = make_value_of(m, *inout)->shape;
  TS_TRY(make_iota(m, wide, shape, shape->rank - 1, &shifts));
  TS_TRY(make_with_integer(m, TS_OP_MULTIPLY, shifts, bits, &shifts));
  TS_TRY(make_binary(m, TS_OP_SHIFT_LEFT, *inout, shifts, inout));
  return make_add(m, TS_OP_REDUCE_SUM, (ts_values){inout, 1}, &attrs, inout);
}

/* An element's bits: of a boolean one. */
static int bits_of(ts_dtype type, bool is_bool) { return is_bool ? 1 : ts_dtype_bits(type); }

static ts_status bitcast_convert(const make_call *m) {
  ts_dtype from_bits, to_bits;
  ts_value_id id = m->operands[0].id;
  TS_TRY(make_count_operands(m, 1));
  const mlir_type *type = &m->op->types.data[0];
  const ts_dtype from = make_operand_of(m, 0)->dtype, to = type->dtype;
  const int had = bits_of(from, m->operands[0].is_bool), wanted = bits_of(to, type->is_bool);
  if (had != wanted) {
    TS_TRY(bits_type(m, from, &from_bits));
    TS_TRY(bits_type(m, to, &to_bits));
    TS_TRY(make_bitcast(m, id, from_bits, &id));
    TS_TRY(had > wanted ? split_bits(m, from_bits, wanted, &id) : join_bits(m, had, to_bits, &id));
  }
  TS_TRY(make_bitcast(m, id, to, &id));
  make_result(m, 0, id);
  return TS_SUCCESS;
}

/* ---- sources */

static ts_status literal(const make_call *m, const mlir_attr *value, ts_value_id *out) {
  ts_attrs attrs = {0};
  TS_TRY(ts_buffer_create(ts_pool_default(), value->type.dtype, value->type.shape, &attrs.literal.buffer));
  ts_status status = mlir_dense_read(value, attrs.literal.buffer->data);
  if (!status) status = make_add(m, TS_OP_LITERAL, (ts_values){0}, &attrs, out);
  ts_buffer_release(attrs.literal.buffer);
  return status;
}

static ts_status constant(const make_call *m) {
  const mlir_attr *value = make_attr(m, "value");
  ts_value_id id;
  _Alignas(16) char element[16];
  TS_TRY(make_count_operands(m, 0));
  if (!value || value->kind != MLIR_ATTR_DENSE) return make_error(m, TS_INVALID_ARGUMENT, "expected a dense constant");
  if (ts_shape_elements(value->type.shape) == 0) {
    TS_TRY(make_integer_of(m, value->type.dtype, value->type.shape, 0, &id));
  } else if (mlir_dense_is_splat(value)) {
    TS_TRY(mlir_dense_read(value, element));
    TS_TRY(ts_graph_constant(m->r->graph, m->region, value->type.dtype, value->type.shape,
                             ts_scalar_load(value->type.dtype, element), &id));
  } else {
    TS_TRY(literal(m, value, &id));
  }
  if (m->r->lifted && value->type.shape->rank == 0) TS_TRY(make_broadcast_to(m, id, m->r->lifted, &id));
  make_result(m, 0, id);
  return TS_SUCCESS;
}

static ts_status iota(const make_call *m) {
  int64_t axis;
  ts_value_id id;
  TS_TRY(make_count_operands(m, 0));
  TS_TRY(make_attr_int(m, "dim|iota_dimension", &axis));
  const mlir_type *type = &m->op->types.data[0];
  if (axis < 0 || axis >= type->shape->rank)
    return make_error(m, TS_INVALID_ARGUMENT, "it has no dim %lld", (long long)axis);
  TS_TRY(make_iota(m, type->dtype, type->shape, (int32_t)axis, &id));
  make_result(m, 0, id);
  return TS_SUCCESS;
}

/* ---- shapes */

static ts_status reshape(const make_call *m) {
  ts_value_id id;
  TS_TRY(make_count_operands(m, 1));
  TS_TRY(make_reshape(m, m->operands[0].id, m->op->types.data[0].shape, &id));
  make_result(m, 0, id);
  return TS_SUCCESS;
}

static bool is_same(const make_call *m, const ts_dims *axes) {
  if (!ts_shape_equal(make_operand_of(m, 0)->shape, m->op->types.data[0].shape)) return false;
  for (int32_t d = 0; d < axes->rank; d++)
    if (axes->dims[d] != d) return false;
  return axes->rank == make_operand_of(m, 0)->shape->rank;
}

/* JAX also writes it where nothing changes. Without an op, other ops see which constant it is. */
static ts_status broadcast_in_dim(const make_call *m) {
  ts_dims axes;
  TS_TRY(make_count_operands(m, 1));
  ts_value_id id = m->operands[0].id;
  TS_TRY(make_attr_ints(m, "dims|broadcast_dimensions", &axes));
  if (!is_same(m, &axes)) TS_TRY(make_broadcast(m, id, m->op->types.data[0].shape, &axes, &id));
  make_result(m, 0, id);
  return TS_SUCCESS;
}

/* Of older versions: further dims in front. */
static ts_status broadcast(const make_call *m) {
  ts_dims sizes, axes = {.rank = 0};
  ts_value_id id;
  TS_TRY(make_count_operands(m, 1));
  TS_TRY(make_attr_ints(m, "sizes|broadcast_sizes", &sizes));
  const ts_shape *from = make_operand_of(m, 0)->shape, *to = m->op->types.data[0].shape;
  if (to->rank != from->rank + sizes.rank) return make_error(m, TS_INVALID_ARGUMENT, "its result has other dims");
  for (int32_t d = 0; d < from->rank; d++) axes.dims[axes.rank++] = sizes.rank + d;
  for (int32_t d = 0; d < sizes.rank; d++)
    if (sizes.dims[d] != to->dims[d]) return make_error(m, TS_INVALID_ARGUMENT, "its result has other dims");
  TS_TRY(make_broadcast(m, m->operands[0].id, to, &axes, &id));
  make_result(m, 0, id);
  return TS_SUCCESS;
}

static ts_status transpose(const make_call *m) {
  ts_dims axes;
  ts_value_id id;
  TS_TRY(make_count_operands(m, 1));
  TS_TRY(make_attr_ints(m, "dims|permutation", &axes));
  TS_TRY(make_transpose(m, m->operands[0].id, &axes, &id));
  make_result(m, 0, id);
  return TS_SUCCESS;
}

static ts_status reverse(const make_call *m) {
  ts_attrs attrs = {0};
  ts_value_id id = m->operands[0].id;
  TS_TRY(make_count_operands(m, 1));
  TS_TRY(make_attr_ints(m, "dims|dimensions", &attrs.axes));
  if (attrs.axes.rank) TS_TRY(make_add(m, TS_OP_REVERSE, (ts_values){&id, 1}, &attrs, &id));
  make_result(m, 0, id);
  return TS_SUCCESS;
}

/* "[0:4:2, 1:3]" */
static ts_status pretty_slice(const make_call *m, const mlir_attr *ranges, ts_attrs *attrs) {
  ts_dims range;
  if (ranges->count > TS_MAX_RANK) return make_error(m, TS_INVALID_ARGUMENT, "it has too many dims");
  attrs->slice.start.rank = attrs->slice.limit.rank = attrs->slice.stride.rank = (int32_t)ranges->count;
  for (size_t d = 0; d < ranges->count; d++) {
    TS_TRY(mlir_attr_ints(&ranges->items[d], &range));
    if (range.rank != 2 && range.rank != 3) return mlir_error(TS_INVALID_ARGUMENT, ranges->token, "expected ranges");
    attrs->slice.start.dims[d] = range.dims[0];
    attrs->slice.limit.dims[d] = range.dims[1];
    attrs->slice.stride.dims[d] = range.rank == 3 ? range.dims[2] : 1;
  }
  return TS_SUCCESS;
}

static ts_status slice(const make_call *m) {
  ts_attrs attrs = {0};
  const mlir_attr *ranges = make_positional(m->op, 0);
  ts_value_id id;
  TS_TRY(make_count_operands(m, 1));
  if (ranges && ranges->kind == MLIR_ATTR_LIST) {
    TS_TRY(pretty_slice(m, ranges, &attrs));
  } else {
    TS_TRY(make_attr_ints(m, "start_indices", &attrs.slice.start));
    TS_TRY(make_attr_ints(m, "limit_indices", &attrs.slice.limit));
    TS_TRY(make_attr_ints(m, "strides", &attrs.slice.stride));
  }
  TS_TRY(make_add(m, TS_OP_SLICE, (ts_values){&m->operands[0].id, 1}, &attrs, &id));
  make_result(m, 0, id);
  return TS_SUCCESS;
}

static ts_status pad(const make_call *m) {
  ts_attrs attrs = {0};
  ts_value_id id;
  TS_TRY(make_count_operands(m, 2));
  TS_TRY(make_attr_ints(m, "low|edge_padding_low", &attrs.pad.low));
  TS_TRY(make_attr_ints(m, "high|edge_padding_high", &attrs.pad.high));
  TS_TRY(make_attr_ints(m, "interior|interior_padding", &attrs.pad.interior));
  TS_TRY(make_add(m, TS_OP_PAD, (ts_values){(ts_value_id[]){m->operands[0].id, m->operands[1].id}, 2}, &attrs, &id));
  make_result(m, 0, id);
  return TS_SUCCESS;
}

/* An op with all operands and one result. */
static ts_status of_all_operands(const make_call *m, ts_opcode code, const ts_attrs *attrs) {
  const size_t count = m->op->operand_count;
  ts_value_id id = 0, *ids;
  if (count == 0 || m->op->types.count != 1) return make_count_operands(m, 1);
  TS_TRY(TS_NEW_ARRAY(count, &ids));
  for (size_t i = 0; i < count; i++) ids[i] = m->operands[i].id;
  ts_status status = make_add(m, code, (ts_values){ids, count}, attrs, &id);
  ts_free(ids);
  TS_TRY(status);
  make_result(m, 0, id);
  return TS_SUCCESS;
}

static ts_status concatenate(const make_call *m) {
  ts_attrs attrs = {0};
  int64_t axis;
  TS_TRY(make_attr_int(m, "dim|dimension", &axis));
  attrs.axis = axis < 0 || axis > TS_MAX_RANK ? TS_MAX_RANK : (int32_t)axis;
  return of_all_operands(m, TS_OP_CONCATENATE, &attrs);
}

static ts_status dynamic_slice(const make_call *m) {
  ts_attrs attrs = {0};
  TS_TRY(make_attr_ints(m, "sizes|slice_sizes", &attrs.shape));
  return of_all_operands(m, TS_OP_DYNAMIC_SLICE, &attrs);
}

static ts_status dynamic_update_slice(const make_call *m) { return of_all_operands(m, TS_OP_PUT_SLICE, NULL); }

static ts_status get_dimension_size(const make_call *m) {
  int64_t axis;
  ts_value_id id;
  TS_TRY(make_count_operands(m, 1));
  TS_TRY(make_attr_int(m, "dim|dimension", &axis));
  const ts_shape *shape = make_operand_of(m, 0)->shape;
  if (axis < 0 || axis >= shape->rank) return make_error(m, TS_INVALID_ARGUMENT, "it has no dim %lld", (long long)axis);
  TS_TRY(make_integer_of(m, TS_S32, &ts_shape_scalar, shape->dims[axis], &id));
  make_result(m, 0, id);
  return TS_SUCCESS;
}

static ts_status same(const make_call *m) {
  if (m->op->operand_count != m->op->types.count) return make_count_operands(m, m->op->types.count);
  for (size_t i = 0; i < m->op->operand_count; i++) m->results[i] = m->operands[i];
  return TS_SUCCESS;
}

/* ---- products, matrices, transforms */

static ts_status list_item(const make_call *m, const char *name, size_t i, ts_dims *out) {
  const mlir_attr *attr = make_attr(m, name);
  out->rank = 0;
  if (!attr) return TS_SUCCESS;
  if (attr->kind != MLIR_ATTR_LIST || attr->count != 2)
    return mlir_error(TS_INVALID_ARGUMENT, attr->token, "expected two lists");
  return mlir_attr_ints(&attr->items[i], out);
}

ts_status make_dot_numbers(const mlir_attr *numbers, ts_attrs *attrs) {
  TS_TRY(make_dict_ints(numbers, "lhs_batching_dimensions", &attrs->dot.lhs_batch));
  TS_TRY(make_dict_ints(numbers, "rhs_batching_dimensions", &attrs->dot.rhs_batch));
  TS_TRY(make_dict_ints(numbers, "lhs_contracting_dimensions", &attrs->dot.lhs_contract));
  return make_dict_ints(numbers, "rhs_contracting_dimensions", &attrs->dot.rhs_contract);
}

ts_status make_dot(const make_call *m, const ts_attrs *attrs, ts_value_id *out) {
  ts_value_id factors[2];
  for (size_t i = 0; i < 2; i++) TS_TRY(make_factor(m, i, &factors[i]));
  TS_TRY(make_add(m, TS_OP_DOT, (ts_values){factors, 2}, attrs, out));
  return make_sum_of_products(m, out);
}

static ts_status dot_dims(const make_call *m, ts_attrs *attrs) {
  const mlir_attr *numbers = make_attr(m, "dot_dimension_numbers");
  if (numbers) return make_dot_numbers(numbers, attrs);
  TS_TRY(list_item(m, "batching_dims", 0, &attrs->dot.lhs_batch));
  TS_TRY(list_item(m, "batching_dims", 1, &attrs->dot.rhs_batch));
  TS_TRY(list_item(m, "contracting_dims", 0, &attrs->dot.lhs_contract));
  return list_item(m, "contracting_dims", 1, &attrs->dot.rhs_contract);
}

static ts_status dot_general(const make_call *m) {
  ts_attrs attrs = {0};
  ts_value_id id;
  TS_TRY(make_count_operands(m, 2));
  TS_TRY(dot_dims(m, &attrs));
  TS_TRY(make_dot(m, &attrs, &id));
  make_result(m, 0, id);
  return TS_SUCCESS;
}

/* Of older versions: the last dim of one operand and the first of the other. */
static ts_status dot(const make_call *m) {
  ts_attrs attrs = {0};
  ts_value_id id;
  TS_TRY(make_count_operands(m, 2));
  const ts_shape *lhs = make_operand_of(m, 0)->shape;
  if (lhs->rank < 1 || lhs->rank > 2 || make_operand_of(m, 1)->shape->rank < 1 ||
      make_operand_of(m, 1)->shape->rank > 2)
    return make_error(m, TS_INVALID_ARGUMENT, "expected vectors or matrices");
  attrs.dot.lhs_contract.rank = attrs.dot.rhs_contract.rank = 1;
  attrs.dot.lhs_contract.dims[0] = lhs->rank - 1;
  TS_TRY(make_dot(m, &attrs, &id));
  make_result(m, 0, id);
  return TS_SUCCESS;
}

static ts_status transform(const make_call *m, ts_opcode code, int32_t axis, int64_t length, ts_value_id *inout) {
  ts_attrs attrs = {0};
  if (length < 0 || length > INT32_MAX) return make_error(m, TS_INVALID_ARGUMENT, "its length is out of range");
  attrs.fft.axis = axis;
  attrs.fft.length = (int32_t)length;
  return make_add(m, code, (ts_values){inout, 1}, &attrs, inout);
}

static ts_status fft(const make_call *m) {
  const mlir_attr *type = make_attr(m, "type|fft_type");
  ts_dims length;
  ts_value_id id = m->operands[0].id;
  TS_TRY(make_count_operands(m, 1));
  TS_TRY(make_attr_ints(m, "length|fft_length", &length));
  const int32_t rank = make_operand_of(m, 0)->shape->rank, first = rank - length.rank, last = rank - 1;
  if (!type || length.rank < 1 || first < 0)
    return make_error(m, TS_INVALID_ARGUMENT, "expected a type and lengths of the last dims");
  const bool real = mlir_token_is(type->token, "RFFT"), to_real = mlir_token_is(type->token, "IRFFT");
  const int64_t size = length.dims[length.rank - 1];
  if (ts_shape_elements(make_operand_of(m, 0)->shape) == 0 || (to_real && size == 0)) { /* also of length 0 */
    ts_shape shape;
    ts_shape_copy(&shape, make_operand_of(m, 0)->shape);
    if (to_real || (real && size > 0)) shape.dims[last] = to_real ? size : size / 2 + 1;
    TS_TRY(ts_graph_constant(m->r->graph, m->region, m->op->types.data[0].dtype, &shape, (ts_scalar){0}, &id));
    make_result(m, 0, id);
    return TS_SUCCESS;
  }
  const bool inverse = to_real || mlir_token_is(type->token, "IFFT");
  if (real) TS_TRY(transform(m, TS_OP_RFFT, last, length.dims[length.rank - 1], &id));
  for (int32_t d = first; d < (real || to_real ? last : rank); d++)
    TS_TRY(transform(m, inverse ? TS_OP_IFFT : TS_OP_FFT, d, length.dims[d - first], &id));
  if (to_real) TS_TRY(transform(m, TS_OP_IRFFT, last, length.dims[length.rank - 1], &id));
  make_result(m, 0, id);
  return TS_SUCCESS;
}

static ts_status cholesky(const make_call *m) {
  const mlir_attr *lower = make_attr(m, "lower");
  int64_t is_lower = 0;
  ts_value_id id;
  TS_TRY(make_count_operands(m, 1));
  if (lower) TS_TRY(mlir_attr_int(lower, &is_lower));
  id = m->operands[0].id;
  if (make_value_of(m, id)->shape->rank < 2) return make_error(m, TS_INVALID_ARGUMENT, "expected matrices");
  if (!is_lower) TS_TRY(make_adjoint(m, id, &id));
  TS_TRY(make_unary(m, TS_OP_CHOLESKY, id, &id));
  if (!is_lower) TS_TRY(make_adjoint(m, id, &id));
  make_result(m, 0, id);
  return TS_SUCCESS;
}

static ts_status triangular_solve(const make_call *m) {
  ts_attrs attrs = {0};
  int64_t left, lower, unit;
  const mlir_attr *transposed = make_attr(m, "transpose_a");
  ts_value_id id;
  TS_TRY(make_count_operands(m, 2));
  TS_TRY(make_attr_int(m, "left_side", &left));
  TS_TRY(make_attr_int(m, "lower", &lower));
  TS_TRY(make_attr_int(m, "unit_diagonal", &unit));
  ts_value_id a = m->operands[0].id;
  if (transposed && mlir_token_is(transposed->token, "ADJOINT")) TS_TRY(make_conjugate(m, a, &a));
  attrs.triangular.left = left != 0;
  attrs.triangular.lower = lower != 0;
  attrs.triangular.unit = unit != 0;
  attrs.triangular.transpose = transposed && !mlir_token_is(transposed->token, "NO_TRANSPOSE");
  TS_TRY(make_add(m, TS_OP_TRIANGULAR_SOLVE, (ts_values){(ts_value_id[]){a, m->operands[1].id}, 2}, &attrs, &id));
  make_result(m, 0, id);
  return TS_SUCCESS;
}

/* ---- calls */

static ts_status call(const make_call *m) {
  const mlir_attr *callee = make_attr(m, "callee");
  if (!callee) callee = make_positional(m->op, 0);
  if (!callee || callee->token.kind != MLIR_SYMBOL) return make_error(m, TS_INVALID_ARGUMENT, "expected a function");
  return make_inline(m, callee->token);
}

/* Composites that are ops of ours; the others are what their decomposition says. */
static ts_status composite(const make_call *m) {
  const mlir_attr *name = make_attr(m, "name"), *decomposition = make_attr(m, "decomposition");
  if (!name) name = make_positional(m->op, 0);
  if (name && mlir_token_is(name->token, "chlo.top_k")) return make_in_top_k(m);
  const ts_opcode code = name ? find_elementwise(name->token) : TS_OP_COUNT;
  if (code != TS_OP_COUNT && ts_op_operands(code) == 1 && m->op->operand_count == 1) {
    ts_value_id id;
    TS_TRY(make_count_operands(m, 1));
    TS_TRY(make_unary(m, code, m->operands[0].id, &id));
    make_result(m, 0, id);
    return TS_SUCCESS;
  }
  if (!decomposition) return make_error(m, TS_INVALID_ARGUMENT, "expected a decomposition");
  return make_inline(m, decomposition->token);
}

/* JAX's callbacks: pure_callback, io_callback, debug.print and others. */
static bool calls_python(mlir_token target) {
  static const char *const names[] = {"xla_python_cpu_callback", "xla_ffi_python_cpu_callback",
                                      "xla_ffi_partitioned_python_cpu_callback", "xla_buffer_python_cpu_callback"};
  for (size_t i = 0; i < sizeof names / sizeof *names; i++)
    if (mlir_token_is(target, names[i])) return true;
  return false;
}

/* The begin and the end of a shard_map for GSPMD, the partitioner that XLA had before sdy. */
static bool is_of_gspmd(mlir_token target) {
  return mlir_token_is(target, "SPMDFullToShardShape") || mlir_token_is(target, "SPMDShardToFullShape");
}

/* Annotations have no meaning for one device, and neither has an order of ops without results (control_dep). */
static ts_status custom_call(const make_call *m) {
  const mlir_attr *target = make_attr(m, "call_target_name");
  if (!target) target = make_positional(m->op, 0);
  if (target && (mlir_token_is(target->token, "annotate_device_placement") || mlir_token_is(target->token, "Sharding")))
    return same(m);
  if (!target) return make_error(m, TS_INVALID_ARGUMENT, "expected a target");
  if (mlir_token_is(target->token, "shape_assertion")) return make_in_assertion(m);
  if (mlir_token_is(target->token, "stablehlo.dynamic_reduce_window")) return make_in_dynamic_window(m);
  if (mlir_token_is(target->token, "stablehlo.dynamic_top_k")) return make_in_dynamic_top_k(m);
  if (make_is_lapack(target->token)) return make_in_lapack(m, target->token);
  if (mlir_token_is(target->token, "ApproxTopK")) return make_in_approx_top_k(m);
  if (mlir_token_is(target->token, "cpu_csr_sparse_dense_ffi")) return make_in_csr_dense(m);
  if (mlir_token_is(target->token, "tridiagonal_solve_perturbed_ffi")) return make_in_perturbed(m);
  if (mlir_token_is(target->token, "control_dep") && m->op->types.count == 0) return TS_SUCCESS;
  if (is_of_gspmd(target->token))
    return make_error(m, TS_UNIMPLEMENTED,
                      "a shard_map for GSPMD cannot be read (%.*s): export it with jax_use_shardy_partitioner",
                      (int)target->token.length, target->token.text);
  if (calls_python(target->token))
    return make_error(m, TS_UNIMPLEMENTED, "a function of Python cannot be called from a program (%.*s)",
                      (int)target->token.length, target->token.text);
  return make_in_plugin(m, target->token);
}

static const struct {
  const char *name;
  make_fn make;
} others[] = {
    {"stablehlo.not", not_op},
    {"stablehlo.shift_right_arithmetic", shift_right_arithmetic},
    {"stablehlo.shift_right_logical", shift_right_logical},
    {"stablehlo.is_finite", is_finite},
    {"stablehlo.round_nearest_even", round_nearest_even},
    {"stablehlo.compare", compare},
    {"stablehlo.select", select_op},
    {"stablehlo.clamp", clamp},
    {"stablehlo.convert", convert},
    {"stablehlo.bitcast_convert", bitcast_convert},
    {"stablehlo.constant", constant},
    {"stablehlo.iota", iota},
    {"stablehlo.reshape", reshape},
    {"stablehlo.broadcast_in_dim", broadcast_in_dim},
    {"stablehlo.transpose", transpose},
    {"stablehlo.reverse", reverse},
    {"stablehlo.slice", slice},
    {"stablehlo.pad", pad},
    {"stablehlo.concatenate", concatenate},
    {"stablehlo.dynamic_slice", dynamic_slice},
    {"stablehlo.dynamic_update_slice", dynamic_update_slice},
    {"stablehlo.get_dimension_size", get_dimension_size},
    {"stablehlo.optimization_barrier", same},
    {"sdy.sharding_constraint", make_in_constraint},
    {"sdy.reshard", make_in_constraint},
    {"sdy.manual_computation", make_in_manual},
    {"builtin.unrealized_conversion_cast", same},
    {"stablehlo.dot_general", dot_general},
    {"stablehlo.fft", fft},
    {"stablehlo.cholesky", cholesky},
    {"stablehlo.triangular_solve", triangular_solve},
    {"stablehlo.composite", composite},
    {"stablehlo.custom_call", custom_call},
    {"call", call},
    {"func.call", call},
    {"stablehlo.while", make_in_control},
    {"stablehlo.case", make_in_control},
    {"stablehlo.if", make_in_control},
    {"stablehlo.reduce", make_in_reduce},
    {"stablehlo.reduce_window", make_in_window},
    {"stablehlo.select_and_scatter", make_in_select_scatter},
    {"stablehlo.convolution", make_in_conv},
    {"stablehlo.gather", make_in_gather},
    {"stablehlo.scatter", make_in_scatter},
    {"stablehlo.sort", make_in_sort},
    {"chlo.lgamma", make_in_special},
    {"chlo.digamma", make_in_special},
    {"chlo.next_after", make_in_special},
    {"chlo.zeta", make_in_special},
    {"chlo.polygamma", make_in_special},
    {"stablehlo.reduce_precision", make_in_special},
    {"stablehlo.dynamic_broadcast_in_dim", make_in_dynamic},
    {"stablehlo.dynamic_reshape", make_in_dynamic},
    {"stablehlo.dynamic_iota", make_in_dynamic},
    {"stablehlo.dynamic_gather", make_in_dynamic},
    {"stablehlo.dynamic_pad", make_in_dynamic},
    {"stablehlo.real_dynamic_slice", make_in_dynamic},
    {"stablehlo.dynamic_conv", make_in_dynamic},
    {"chlo.top_k", make_in_top_k},
    {"stablehlo.dot", dot},
    {"stablehlo.broadcast", broadcast},
    {"chlo.mulhi", make_in_chlo},
    {"chlo.conj", make_in_chlo},
    {"chlo.square", make_in_chlo},
    {"chlo.is_pos_inf", make_in_chlo},
    {"chlo.is_neg_inf", make_in_chlo},
    {"chlo.bessel_i1e", make_in_chlo},
    {"chlo.ragged_dot", make_in_chlo},
    {"stablehlo.rng_bit_generator", make_in_random},
    {"stablehlo.batch_norm_training", make_in_norm},
    {"stablehlo.batch_norm_inference", make_in_norm},
    {"stablehlo.batch_norm_grad", make_in_norm},
    {"stablehlo.tuple", make_in_tuple},
    {"stablehlo.get_tuple_element", make_in_tuple},
    {"stablehlo.after_all", make_in_token},
    {"stablehlo.create_token", make_in_token},
    {"stablehlo.map", make_in_map},
    {"stablehlo.uniform_quantize", make_in_quantize},
    {"stablehlo.all_gather", make_in_collective},
    {"stablehlo.all_reduce", make_in_collective},
    {"stablehlo.reduce_scatter", make_in_collective},
    {"stablehlo.all_to_all", make_in_collective},
    {"stablehlo.collective_broadcast", make_in_collective},
    {"stablehlo.collective_permute", make_in_collective},
    {"stablehlo.collective_reduce", make_in_collective},
    {"stablehlo.replica_id", make_in_process_id},
    {"stablehlo.partition_id", make_in_process_id},
    {"interpreter.run_parallel", make_in_parallel},
    {"stablehlo.uniform_dequantize", make_in_quantize},
};

make_fn make_find(mlir_token name) {
  for (size_t i = 0; i < sizeof others / sizeof *others; i++)
    if (mlir_token_is(name, others[i].name)) return others[i].make;
  return find_elementwise(name) == TS_OP_COUNT ? NULL : elementwise;
}
