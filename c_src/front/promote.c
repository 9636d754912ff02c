#include "front/promote.h"

#include <stdio.h>

/* ---- types ---- */

static bool is_negative(const ts_number *n) { return n->kind == TS_NUMBER_SIGNED && n->s < 0; }

/* The initial type of a call on numbers alone. */
static ts_dtype least_type(const ts_operand *operands, size_t first, size_t count) {
  for (size_t i = first; i < count; i++)
    if (operands[i].number.kind == TS_NUMBER_UNSIGNED) return TS_U64;
  return TS_S32;
}

/* Merges the numbers of one sign. Negative ones come first, so that the result does not depend on their order (u8, 300
 * and -1 give s16). */
static ts_dtype merge_numbers(ts_dtype type, const ts_operand *operands, size_t first, size_t count, bool negative) {
  for (size_t i = first; i < count; i++) {
    const ts_operand *o = &operands[i];
    if (o->is_number && is_negative(&o->number) == negative) type = ts_number_merge(type, &o->number);
  }
  return type;
}

/* The common type of operands [first, count); numbers only widen the type of the others. */
static ts_dtype merged_type(const ts_operand *operands, size_t first, size_t count) {
  ts_dtype type = TS_DTYPE_NONE;
  bool numbers = false;
  for (size_t i = first; i < count; i++) {
    if (operands[i].is_number)
      numbers = true;
    else
      type = type == TS_DTYPE_NONE ? operands[i].dtype : ts_dtype_merge(type, operands[i].dtype);
  }
  if (!numbers) return type;
  if (type == TS_DTYPE_NONE) type = least_type(operands, first, count);
  return merge_numbers(merge_numbers(type, operands, first, count, true), operands, first, count, false);
}

static ts_dtype own_type(const ts_operand *o) { return o->is_number ? ts_number_dtype(&o->number) : o->dtype; }

static void merge_range(const ts_operand *operands, size_t first, size_t count, ts_dtype *out) {
  ts_dtype type = merged_type(operands, first, count);
  for (size_t i = first; i < count; i++) out[i] = type;
}

static void indexed_types(ts_opcode code, const ts_operand *operands, size_t count, ts_dtype *out) {
  for (size_t i = 0; i < count; i++) out[i] = own_type(&operands[i]);
  if (code == TS_OP_PUT_SLICE && count >= 2) merge_range(operands, 0, 2, out);
  if ((code == TS_OP_INDEXED_ADD || code == TS_OP_INDEXED_PUT) && count == 3) {
    const ts_operand values[2] = {operands[0], operands[2]};
    ts_dtype types[2];
    merge_range(values, 0, 2, types);
    out[0] = types[0];
    out[2] = types[1];
  }
}

static void reduce_types(ts_opcode code, const ts_operand *operands, size_t count, ts_dtype *out) {
  merge_range(operands, 0, count, out);
  if (count > 0 && (code == TS_OP_REDUCE_SUM || code == TS_OP_REDUCE_PRODUCT)) out[0] = ts_dtype_aggregate(out[0]);
}

/* f32 or f64, or complex numbers with such parts. */
static void fft_types(ts_opcode code, const ts_operand *operands, ts_dtype *out) {
  merge_range(operands, 0, 1, out);
  out[0] = ts_dtype_accumulator(ts_dtype_to_float(out[0]));
  if (code == TS_OP_IRFFT) out[0] = ts_dtype_to_complex(out[0]);
}

ts_status ts_op_operand_types(ts_opcode code, ts_operands all, ts_dtype *out) {
  const ts_operand *operands = all.data;
  size_t count = all.count;
  int wanted = ts_op_operands(code);
  if (wanted >= 0 && count != (size_t)wanted)
    return ts_error(TS_INVALID_ARGUMENT, "%s takes %d operands, got %zu", ts_op_name(code), wanted, count);
  switch (ts_op_get_class(code)) {
  case TS_CLASS_UNARY_FLOAT:
  case TS_CLASS_BINARY_FLOAT:
  case TS_CLASS_LINALG:
    merge_range(operands, 0, count, out);
    for (size_t i = 0; i < count; i++) out[i] = ts_dtype_to_float(out[i]);
    return TS_SUCCESS;
  case TS_CLASS_FFT: fft_types(code, operands, out); return TS_SUCCESS;
  case TS_CLASS_SELECT:
    out[0] = own_type(&operands[0]);
    merge_range(operands, 1, count, out);
    return TS_SUCCESS;
  case TS_CLASS_REDUCE: reduce_types(code, operands, count, out); return TS_SUCCESS;
  case TS_CLASS_COLLECTIVE:
    for (size_t i = 0; i < count; i++) out[i] = own_type(&operands[i]);
    return TS_SUCCESS;
  case TS_CLASS_INDEXED: indexed_types(code, operands, count, out); return TS_SUCCESS;
  case TS_CLASS_CONTROL:
    return ts_error(TS_INVALID_ARGUMENT, "%s has regions, expected an op without", ts_op_name(code));
  case TS_CLASS_SOURCE:
  case TS_CLASS_UNARY:
  case TS_CLASS_UNARY_INTEGER:
  case TS_CLASS_PREDICATE:
  case TS_CLASS_COMPLEX:
  case TS_CLASS_BINARY:
  case TS_CLASS_BINARY_INTEGER:
  case TS_CLASS_COMPARE:
  case TS_CLASS_CONVERT:
  case TS_CLASS_CLAMP:
  case TS_CLASS_SHAPE:
  case TS_CLASS_ARG_REDUCE:
  case TS_CLASS_SCAN:
  case TS_CLASS_SORT:
  case TS_CLASS_WINDOW:
#ifdef TS_TEST_ROWS
  case TS_CLASS_TEST:
#endif
  case TS_CLASS_DOT:
    if (code != TS_OP_QUANTIZED_DOT) merge_range(operands, 0, count, out);
    for (size_t i = 0; i < count && code == TS_OP_QUANTIZED_DOT; i++) out[i] = own_type(&operands[i]);
    return TS_SUCCESS;
  }
  return ts_error(TS_UNIMPLEMENTED, "%s has no types of operands", ts_op_name(code));
}

/* ---- shapes ---- */

static bool broadcasts(ts_opcode code) {
  ts_op_class class = ts_op_get_class(code);
  return ts_op_is_elementwise(code) && class != TS_CLASS_SOURCE;
}

/* Adds the op and the operands as the caller passed them to an error's message. */
static ts_status of_call(ts_opcode code, const ts_operand *operands, size_t count, ts_status why) {
  char text[4 * TS_SHAPE_TEXT];
  size_t used = 0;
  text[0] = '\0';
  for (size_t i = 0; i < count && used < sizeof text; i++) {
    int n = snprintf(text + used, sizeof text - used, "%s%s", i ? ", " : "",
                     TS_SHAPE_STR(own_type(&operands[i]), operands[i].shape));
    if (n > 0) used += (size_t)n;
  }
  return ts_error_context(why, "%s(%s)", ts_op_name(code), text);
}

static ts_status broadcast_shape(ts_opcode code, const ts_operand *operands, size_t count, ts_shape *out) {
  ts_shape_copy(out, operands[0].shape);
  for (size_t i = 1; i < count; i++) {
    ts_shape both;
    if (ts_shape_equal(out, operands[i].shape)) continue;
    ts_status status = ts_shape_broadcast(out, operands[i].shape, &both);
    if (status) return of_call(code, operands, count, status);
    ts_shape_copy(out, &both);
  }
  return TS_SUCCESS;
}

/* Checked here because the core's message would show the operands after conversion and broadcasting. */
static ts_status check_integers(ts_opcode code, const ts_operand *operands, size_t count, ts_dtype common) {
  if (ts_op_get_class(code) != TS_CLASS_BINARY_INTEGER || ts_dtype_is_integer(common)) return TS_SUCCESS;
  return of_call(code, operands, count, ts_error(TS_INVALID_ARGUMENT, "expected integer types"));
}

/* ---- values ---- */

ts_status ts_op_place(ts_graph *graph, ts_region_id region, const ts_operand *operand, ts_dtype dtype,
                      const ts_shape *shape, ts_value_id *out) {
  if (operand->is_number) {
    ts_scalar scalar;
    TS_TRY(ts_number_scalar(&operand->number, dtype, &scalar));
    return ts_graph_constant(graph, region, dtype, shape, scalar, out);
  }
  TS_TRY(ts_graph_convert(graph, region, operand->value, dtype, out));
  return ts_graph_broadcast_to(graph, region, *out, shape, out);
}

/* u8 of the operand's shape: 1 where it is not 0. */
static ts_status truth(ts_graph *graph, ts_region_id region, const ts_operand *operand, ts_value_id *out) {
  ts_value_id pair[2];
  ts_dtype dtype = own_type(operand);
  if (!operand->is_number && dtype == TS_U8) {
    *out = operand->value;
    return TS_SUCCESS;
  }
  TS_TRY(ts_op_place(graph, region, operand, dtype, operand->shape, &pair[0]));
  TS_TRY(ts_graph_constant(graph, region, dtype, operand->shape, (ts_scalar){0}, &pair[1]));
  return ts_graph_add_op(graph, region, TS_OP_NOT_EQUAL, (ts_values){pair, 2}, NULL, out);
}

ts_status ts_op_predicate(ts_graph *graph, ts_region_id region, const ts_operand *operand, ts_value_id *out) {
  if (operand->shape->rank != 0)
    return ts_error(TS_INVALID_ARGUMENT, "expected a scalar predicate, got %s",
                    TS_SHAPE_STR(own_type(operand), operand->shape));
  return truth(graph, region, operand, out);
}

/* A select's condition, which may be of any type, as one of u8. */
static ts_status make_condition(ts_graph *graph, ts_region_id region, ts_operand *operand) {
  ts_operand condition = {.dtype = TS_U8, .shape = operand->shape};
  TS_TRY(truth(graph, region, operand, &condition.value));
  *operand = condition;
  return TS_SUCCESS;
}

/* `types` and `values` have room for one of each operand. The values are of the op's types and shapes. */
static ts_status place_all(ts_graph *graph, ts_region_id region, ts_opcode code, ts_operands operands, ts_dtype *types,
                           ts_value_id *values) {
  ts_shape common;
  size_t count = operands.count;
  bool broadcast = broadcasts(code) && count > 0;
  TS_TRY(ts_op_operand_types(code, operands, types));
  if (count > 0) TS_TRY(check_integers(code, operands.data, count, types[0]));
  if (broadcast) TS_TRY(broadcast_shape(code, operands.data, count, &common));
  for (size_t i = 0; i < count; i++) {
    ts_operand o = operands.data[i];
    if (code == TS_OP_SELECT && i == 0) {
      TS_TRY(make_condition(graph, region, &o));
      types[i] = TS_U8;
    }
    TS_TRY(ts_op_place(graph, region, &o, types[i], broadcast ? &common : o.shape, &values[i]));
  }
  return TS_SUCCESS;
}

enum { FEW = 8 };

ts_status ts_op_build(ts_graph *graph, ts_region_id region, ts_opcode code, ts_operands operands, const ts_attrs *attrs,
                      ts_value_id *out) {
  ts_value_id few_values[FEW], *values = few_values;
  ts_dtype few_types[FEW] = {0}, *types = few_types;
  size_t count = operands.count;
  if (count > FEW) TS_TRY(TS_NEW_ARRAY(count, &values));
  ts_status status = count > FEW ? TS_NEW_ARRAY(count, &types) : TS_SUCCESS;
  if (!status) status = place_all(graph, region, code, operands, types, values);
  if (!status) status = ts_graph_add_op(graph, region, code, (ts_values){values, count}, attrs, out);
  if (types != few_types) ts_free(types);
  if (values != few_values) ts_free(values);
  return status;
}
