#include "stablehlo/make.h"
#include "ir/syntax.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

ts_status(make_error)(const make_call *m, ts_code code, const char *format, ...) {
  char message[512];
  va_list args;
  va_start(args, format);
  vsnprintf(message, sizeof message, format, args);
  va_end(args);
  return ts_error(code, "%s: %.*s: %s", MLIR_PLACE(m->op->name), (int)m->op->name.length, m->op->name.text, message);
}

/* ---- attributes */

const mlir_attr *make_attr(const make_call *m, const char *names) {
  char name[64];
  while (*names) {
    size_t length = strcspn(names, "|");
    snprintf(name, sizeof name, "%.*s", (int)length, names);
    const mlir_attr *attr = mlir_op_attr(m->op, name);
    if (attr) return attr;
    names += length + (names[length] == '|');
  }
  return NULL;
}

const mlir_attr *make_positional(const mlir_op *op, size_t i) {
  for (size_t a = 0; a < op->attr_count; a++)
    if (op->attrs[a].name.length == 0 && i-- == 0) return &op->attrs[a];
  return NULL;
}

ts_status make_attr_int(const make_call *m, const char *name, int64_t *out) {
  const mlir_attr *attr = make_attr(m, name);
  if (!attr) return make_error(m, TS_INVALID_ARGUMENT, "expected the attribute %s", name);
  return mlir_attr_int(attr, out);
}

ts_status make_attr_ints(const make_call *m, const char *name, ts_dims *out) {
  const mlir_attr *attr = make_attr(m, name);
  if (!attr) return make_error(m, TS_INVALID_ARGUMENT, "expected the attribute %s", name);
  return mlir_attr_ints(attr, out);
}

ts_status make_ints_or(const mlir_attr *attr, int32_t rank, int64_t otherwise, ts_dims *out) {
  out->rank = rank;
  for (int32_t d = 0; d < rank; d++) out->dims[d] = otherwise;
  if (!attr) return TS_SUCCESS;
  TS_TRY(mlir_attr_ints(attr, out));
  if (out->rank == rank) return TS_SUCCESS;
  return mlir_error(TS_INVALID_ARGUMENT, attr->token, "expected %d integers", rank);
}

ts_status make_dict_ints(const mlir_attr *dict, const char *name, ts_dims *out) {
  const mlir_attr *attr = mlir_find_attr(dict->items, dict->count, name);
  out->rank = 0;
  return attr ? mlir_attr_ints(attr, out) : TS_SUCCESS;
}

ts_status make_attr_padding(const mlir_attr *attr, int32_t rank, ts_dims out[2]) {
  ts_dims pairs = {0};
  if (attr) TS_TRY(mlir_attr_ints(attr, &pairs));
  if (attr && pairs.rank != 2 * rank) return mlir_error(TS_INVALID_ARGUMENT, attr->token, "expected %d pairs", rank);
  for (int i = 0; i < 2; i++) {
    out[i].rank = rank;
    for (int32_t d = 0; d < rank; d++) out[i].dims[d] = attr ? pairs.dims[2 * d + i] : 0;
  }
  return TS_SUCCESS;
}

ts_status make_count_operands(const make_call *m, size_t count) {
  if (m->op->operand_count != count)
    return make_error(m, TS_INVALID_ARGUMENT, "it has %zu operands, expected %zu", m->op->operand_count, count);
  return m->op->types.count ? TS_SUCCESS : make_error(m, TS_INVALID_ARGUMENT, "it has no result");
}

/* ---- pieces */

ts_status make_add(const make_call *m, ts_opcode code, ts_values operands, const ts_attrs *attrs, ts_value_id *out) {
  return ts_graph_add_op(m->r->graph, m->region, code, operands, attrs, out);
}

ts_status make_unary(const make_call *m, ts_opcode code, ts_value_id x, ts_value_id *out) {
  return make_add(m, code, (ts_values){&x, 1}, NULL, out);
}

ts_status make_binary(const make_call *m, ts_opcode code, ts_value_id x, ts_value_id y, ts_value_id *out) {
  return make_add(m, code, (ts_values){(ts_value_id[]){x, y}, 2}, NULL, out);
}

ts_status make_take_along(const make_call *m, ts_value_id x, ts_value_id where, int32_t axis, ts_value_id *out) {
  const ts_attrs attrs = {.axis = axis};
  return make_add(m, TS_OP_TAKE_ALONG, (ts_values){(ts_value_id[]){x, where}, 2}, &attrs, out);
}

ts_status make_bitcast(const make_call *m, ts_value_id x, ts_dtype type, ts_value_id *out) {
  *out = x;
  if (make_value_of(m, x)->dtype == type) return TS_SUCCESS;
  return make_add(m, TS_OP_BITCAST, (ts_values){&x, 1}, &(ts_attrs){.dtype = type}, out);
}

ts_status make_convert(const make_call *m, ts_value_id x, ts_dtype type, ts_value_id *out) {
  return ts_graph_convert(m->r->graph, m->region, x, type, out);
}

ts_value_id make_truth_of(const make_call *m, const make_value *value, ts_dtype type) {
  const ts_op *op = value->is_bool ? make_maker_of(m, value->id) : NULL;
  ts_scalar number;
  if (!op || op->code != TS_OP_NOT_EQUAL || !ts_graph_is_constant(m->r->graph, op->operands[1], &number))
    return value->id;
  const ts_dtype own = make_value_of(m, op->operands[0])->dtype;
  const bool is_zero = ts_scalar_same(own, number, ts_scalar_from_s64(own, 0));
  return is_zero && (type == TS_DTYPE_NONE || type == own) ? op->operands[0] : value->id;
}

ts_status make_to_type(const make_call *m, const make_value *value, const mlir_type *type, ts_value_id *out) {
  ts_value_id id = value->id;
  if (!type->is_bool || value->is_bool) return make_convert(m, id, type->dtype, out);
  if (ts_dtype_is_complex(make_value_of(m, id)->dtype)) TS_TRY(make_unary(m, TS_OP_REAL, id, &id));
  return make_with_integer(m, TS_OP_NOT_EQUAL, id, 0, out);
}

ts_status make_factor(const make_call *m, size_t i, ts_value_id *out) {
  const mlir_type *type = &m->op->types.data[0];
  TS_TRY(make_to_type(m, &m->operands[i], type, out));
  return type->is_bool ? make_convert(m, *out, TS_F32, out) : TS_SUCCESS;
}

ts_status make_sum_of_products(const make_call *m, ts_value_id *inout) {
  return m->op->types.data[0].is_bool ? make_with(m, TS_OP_NOT_EQUAL, *inout, 0, inout) : TS_SUCCESS;
}

ts_status make_select(const make_call *m, ts_value_id predicate, ts_value_id x, ts_value_id y, ts_value_id *out) {
  TS_TRY(make_broadcast_to(m, predicate, make_value_of(m, x)->shape, &predicate));
  return make_add(m, TS_OP_SELECT, (ts_values){(ts_value_id[]){predicate, x, y}, 3}, NULL, out);
}

ts_status make_number(const make_call *m, ts_value_id like, double number, ts_value_id *out) {
  const ts_value *value = make_value_of(m, like);
  const ts_scalar scalar = ts_scalar_from_f64(value->dtype, number);
  return ts_graph_constant(m->r->graph, m->region, value->dtype, value->shape, scalar, out);
}

ts_status make_integer_of(const make_call *m, ts_dtype dtype, const ts_shape *shape, int64_t number, ts_value_id *out) {
  return ts_graph_constant(m->r->graph, m->region, dtype, shape, ts_scalar_from_s64(dtype, number), out);
}

ts_status make_integer(const make_call *m, ts_value_id like, int64_t number, ts_value_id *out) {
  const ts_value *value = make_value_of(m, like);
  return make_integer_of(m, value->dtype, value->shape, number, out);
}

ts_status make_with(const make_call *m, ts_opcode code, ts_value_id x, double number, ts_value_id *out) {
  ts_value_id other;
  TS_TRY(make_number(m, x, number, &other));
  return make_binary(m, code, x, other, out);
}

ts_status make_with_integer(const make_call *m, ts_opcode code, ts_value_id x, int64_t number, ts_value_id *out) {
  ts_value_id other;
  TS_TRY(make_integer(m, x, number, &other));
  return make_binary(m, code, x, other, out);
}

ts_status make_reshape(const make_call *m, ts_value_id x, const ts_shape *shape, ts_value_id *out) {
  ts_attrs attrs = {0};
  *out = x;
  if (ts_shape_equal(make_value_of(m, x)->shape, shape)) return TS_SUCCESS;
  ts_shape_copy(&attrs.shape, shape);
  return make_add(m, TS_OP_RESHAPE, (ts_values){&x, 1}, &attrs, out);
}

ts_status make_transpose(const make_call *m, ts_value_id x, const ts_dims *axes, ts_value_id *out) {
  ts_attrs attrs = {0};
  bool same = axes->rank == make_value_of(m, x)->shape->rank;
  for (int32_t d = 0; d < axes->rank; d++) same = same && axes->dims[d] == d;
  *out = x;
  if (same) return TS_SUCCESS;
  ts_shape_copy(&attrs.axes, axes);
  return make_add(m, TS_OP_TRANSPOSE, (ts_values){&x, 1}, &attrs, out);
}

ts_status make_broadcast_to(const make_call *m, ts_value_id x, const ts_shape *shape, ts_value_id *out) {
  return ts_graph_broadcast_to(m->r->graph, m->region, x, shape, out);
}

ts_status make_broadcast(const make_call *m, ts_value_id x, const ts_shape *shape, const ts_dims *axes,
                         ts_value_id *out) {
  ts_attrs attrs = {0};
  ts_shape_copy(&attrs.broadcast.shape, shape);
  ts_shape_copy(&attrs.broadcast.axes, axes);
  return make_add(m, TS_OP_BROADCAST, (ts_values){&x, 1}, &attrs, out);
}

ts_status make_slice(const make_call *m, ts_value_id x, int32_t axis, make_range range, ts_value_id *out) {
  const ts_shape *shape = make_value_of(m, x)->shape;
  ts_attrs attrs = {0};
  attrs.slice.start.rank = attrs.slice.limit.rank = attrs.slice.stride.rank = shape->rank;
  for (int32_t d = 0; d < shape->rank; d++) {
    attrs.slice.start.dims[d] = d == axis ? range.start : 0;
    attrs.slice.limit.dims[d] = d == axis ? range.limit : shape->dims[d];
    attrs.slice.stride.dims[d] = d == axis ? range.stride : 1;
  }
  return make_add(m, TS_OP_SLICE, (ts_values){&x, 1}, &attrs, out);
}

ts_status make_iota(const make_call *m, ts_dtype dtype, const ts_shape *shape, int32_t axis, ts_value_id *out) {
  ts_attrs attrs = {0};
  attrs.iota.dtype = dtype;
  attrs.iota.axis = axis;
  ts_shape_copy(&attrs.iota.shape, shape);
  return make_add(m, TS_OP_IOTA, (ts_values){0}, &attrs, out);
}

ts_status make_conjugate(const make_call *m, ts_value_id x, ts_value_id *out) {
  ts_value_id real, imag;
  *out = x;
  if (!ts_dtype_is_complex(make_value_of(m, x)->dtype)) return TS_SUCCESS;
  TS_TRY(make_unary(m, TS_OP_REAL, x, &real));
  TS_TRY(make_unary(m, TS_OP_IMAG, x, &imag));
  TS_TRY(make_unary(m, TS_OP_NEGATE, imag, &imag));
  return make_binary(m, TS_OP_COMPLEX, real, imag, out);
}

/* Matrices in rows and columns exchanged. */
static ts_status turned(const make_call *m, ts_value_id x, ts_value_id *out) {
  ts_dims axes = {.rank = make_value_of(m, x)->shape->rank};
  for (int32_t d = 0; d < axes.rank; d++) axes.dims[d] = d;
  axes.dims[axes.rank - 1] = axes.rank - 2;
  axes.dims[axes.rank - 2] = axes.rank - 1;
  return make_transpose(m, x, &axes, out);
}

ts_status make_adjoint(const make_call *m, ts_value_id x, ts_value_id *out) {
  TS_TRY(make_conjugate(m, x, out));
  return turned(m, *out, out);
}

/* Half to even: of floor(x) and the next integer the nearer one, or the even one; zeros keep the sign of x. */
ts_status make_round_even(const make_call *m, ts_value_id x, ts_value_id *out) {
  ts_value_id low, up, apart, half, even, zero, test, result;
  TS_TRY(make_unary(m, TS_OP_FLOOR, x, &low));
  TS_TRY(make_with(m, TS_OP_ADD, low, 1, &up));
  TS_TRY(make_binary(m, TS_OP_SUBTRACT, x, low, &apart));
  TS_TRY(make_number(m, x, 0.5, &half));
  TS_TRY(make_number(m, x, 0, &zero));
  TS_TRY(make_with(m, TS_OP_REMAINDER, low, 2, &even));
  TS_TRY(make_binary(m, TS_OP_EQUAL, even, zero, &even));
  TS_TRY(make_select(m, even, low, up, &result));
  TS_TRY(make_binary(m, TS_OP_LESS, apart, half, &test));
  TS_TRY(make_select(m, test, low, result, &result));
  TS_TRY(make_binary(m, TS_OP_GREATER, apart, half, &test));
  TS_TRY(make_select(m, test, up, result, &result));
  TS_TRY(make_binary(m, TS_OP_EQUAL, result, zero, &test));
  TS_TRY(make_binary(m, TS_OP_MULTIPLY, x, zero, &zero));
  return make_select(m, test, zero, result, out);
}

/* ---- signatures of regions */

static bool is_constant(const mlir_op *op) { return mlir_token_is(op->name, "stablehlo.constant"); }

static const mlir_op *op_of(const mlir_region *region, mlir_token name) {
  for (size_t i = 0; i < region->op_count; i++)
    if (region->ops[i].result_name_count == 1 && mlir_tokens_equal(region->ops[i].results[0], name))
      return &region->ops[i];
  return NULL;
}

/* The number of a name among the parameters and ops of a region, without its constants; -1: of a scope around it. */
static int number_of(const mlir_region *region, mlir_token name) {
  int number = (int)region->param_count;
  for (size_t i = 0; i < region->param_count; i++)
    if (mlir_tokens_equal(region->params[i], name)) return (int)i;
  for (size_t i = 0; i < region->op_count; i++) {
    if (is_constant(&region->ops[i])) continue;
    if (region->ops[i].result_name_count == 1 && mlir_tokens_equal(region->ops[i].results[0], name)) return number;
    number++;
  }
  return -1;
}

static void write_number(ts_dtype type, ts_scalar value, ts_text *out) {
  double number = ts_scalar_to_f64(type, value);
  if (number != number)
    ts_text_append(out, " nan"); /* printf may show which of them */
  else
    ts_text_format(out, " c%.17g", number);
}

/* A constant of the region or around it. */
static ts_status write_outside(const make_call *m, const mlir_region *region, mlir_token name, ts_text *out) {
  const mlir_op *op = op_of(region, name);
  const mlir_attr *given = op ? mlir_op_attr(op, "value") : NULL;
  _Alignas(16) char element[16];
  make_value outside;
  ts_scalar value;
  if (given && given->kind == MLIR_ATTR_DENSE && mlir_dense_is_splat(given)) {
    TS_TRY(mlir_dense_read(given, element));
    write_number(given->type.dtype, ts_scalar_load(given->type.dtype, element), out);
    return TS_SUCCESS;
  }
  TS_TRY(make_look_up(m->scope, name, &outside));
  if (ts_graph_is_constant(m->r->graph, outside.id, &value))
    write_number(make_value_of(m, outside.id)->dtype, value, out);
  else
    ts_text_append(out, " outside");
  return TS_SUCCESS;
}

static ts_status write_operand(const make_call *m, const mlir_region *region, mlir_token name, ts_text *out) {
  int number = number_of(region, name);
  if (number < 0) return write_outside(m, region, name, out);
  ts_text_format(out, " %d", number);
  return TS_SUCCESS;
}

static const char *short_name(mlir_token name, int *out_length) {
  const char *point = memchr(name.text, '.', name.length);
  const char *from = point ? point + 1 : name.text;
  *out_length = (int)(name.length - (size_t)(from - name.text));
  return from;
}

ts_status make_signature(const make_call *m, const mlir_region *region, ts_text *out) {
  for (size_t i = 0; i < region->op_count; i++) {
    const mlir_op *op = &region->ops[i];
    int length;
    const char *name = short_name(op->name, &length);
    if (is_constant(op)) continue;
    if (op->region_count) {
      ts_text_append(out, "regions;");
      return TS_SUCCESS;
    }
    ts_text_format(out, "%.*s", length, name);
    const mlir_attr *direction = mlir_op_attr(op, "comparison_direction");
    if (!direction) direction = make_positional(op, 0);
    if (direction && direction->kind == MLIR_ATTR_WORD)
      ts_text_format(out, " %.*s", (int)direction->token.length, direction->token.text);
    const mlir_attr *type = mlir_op_attr(op, "compare_type");
    if (!type) type = make_positional(op, 1);
    if (type && mlir_token_is(type->token, "TOTALORDER")) ts_text_append(out, " TOTALORDER");
    for (size_t j = 0; j < op->operand_count; j++) TS_TRY(write_operand(m, region, op->operands[j], out));
    ts_text_append(out, ";");
  }
  return out->failed ? ts_error_no_memory() : TS_SUCCESS;
}

ts_status make_look_up(const make_scope *scope, mlir_token name, make_value *out) {
  uintptr_t found = (uintptr_t)ts_map_get(&scope->names, name.text, name.length);
  if (!found) return mlir_error(TS_INVALID_ARGUMENT, name, "expected a value that is defined before");
  *out = scope->values.data[found - 1];
  return TS_SUCCESS;
}

void make_append_plain(mlir_token token, size_t from, size_t to, ts_text *out) {
  for (size_t i = from; i < to; i++) {
    char c = token.text[i];
    if (c == '\\' && token.line && i + 1 < to) {
      uint8_t byte = 0;
      const char next = token.text[++i];
      c = next == 'n' ? '\n' : next == 't' ? '\t' : next;
      if (i + 1 < to && ts_syntax_parse_hex(token.text + i, 1, &byte)) {
        c = (char)byte;
        i++;
      }
    }
    ts_text_append_n(out, &c, 1);
  }
}
