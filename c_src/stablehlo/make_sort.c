/* Sorts with a known comparator: the comparators of JAX and of Tessera's own printer. make_order.c has the others. */
#include "stablehlo/make.h"

#include <stdio.h>
#include <string.h>

/* The key is operand 0, whose two numbers are parameters 0 and 1. */
typedef enum order { UNKNOWN, ASCENDING, DESCENDING } order;

/* JAX's float keys: zeros become 0, NaNs the same NaN, then the total order. %d: the number of the first op. */
static bool is_normal(const char *text, int n, const char *direction) {
  char form[512];
  snprintf(
      form, sizeof form,
      "compare EQ 0 c0;select %d c0 0;compare NE 0 0;select %d nan %d;compare EQ 1 c0;select %d c0 1;compare NE 1 1;"
      "select %d nan %d;compare %s TOTALORDER %d %d;return %d;",
      n, n + 2, n + 1, n + 4, n + 6, n + 5, direction, n + 3, n + 7, n + 8);
  return strcmp(text, form) == 0;
}

/* Tessera's own printer before it printed the form above: a NaN is last, or first in descending order. */
static bool is_own(const char *text, int n, bool descending) {
  char form[128];
  snprintf(form, sizeof form, "compare %s 0 1;compare EQ %d %d;compare NE %d %d;and %d %d;or %d %d;return %d;",
           descending ? "GT" : "LT", descending, descending, !descending, !descending, n + 1, n + 2, n, n + 3, n + 4);
  return strcmp(text, form) == 0;
}

/* `*out_total`: by the total order of floats: NaNs with a sign come first, and -0 is less than 0. */
static order find_order(const char *text, int params, bool *out_total) {
  char form[80];
  for (int i = 0; i < 4; i++) {
    const char *direction = i & 1 ? "GT" : "LT";
    *out_total = i >= 2;
    snprintf(form, sizeof form, "compare %s%s 0 1;return %d;", direction, *out_total ? " TOTALORDER" : "", params);
    if (strcmp(text, form) == 0) return i & 1 ? DESCENDING : ASCENDING;
    if (!*out_total && (is_normal(text, params, direction) || is_own(text, params, i & 1)))
      return i & 1 ? DESCENDING : ASCENDING;
  }
  return UNKNOWN;
}

/* The bits, of negative numbers all but the sign turned around. */
ts_status make_total_key(const make_call *m, ts_value_id x, ts_value_id *out) {
  const ts_dtype type = make_value_of(m, x)->dtype, bits = ts_dtype_of_bits(TS_KIND_SIGNED, ts_dtype_bits(type));
  ts_value_id sign;
  *out = x;
  if (!ts_dtype_is_float(type)) return TS_SUCCESS;
  TS_TRY(make_bitcast(m, x, bits, out));
  TS_TRY(make_with_integer(m, TS_OP_SHIFT_RIGHT, *out, ts_dtype_bits(type) - 1, &sign));
  TS_TRY(make_with_integer(m, TS_OP_AND, sign, (int64_t)(UINT64_MAX >> (65 - ts_dtype_bits(type))), &sign));
  return make_binary(m, TS_OP_XOR, *out, sign, out);
}

static ts_status check_sort(const make_call *m, int64_t *out_axis) {
  const mlir_attr *axis = make_attr(m, "dimension");
  if (m->op->operand_count == 0 || m->op->types.count != m->op->operand_count || m->op->region_count != 1)
    return make_error(m, TS_INVALID_ARGUMENT, "expected a region, and as many results as operands");
  const ts_shape *shape = make_operand_of(m, 0)->shape;
  *out_axis = shape->rank - 1;
  if (axis) TS_TRY(mlir_attr_int(axis, out_axis));
  if (*out_axis < 0 || *out_axis >= shape->rank)
    return make_error(m, TS_INVALID_ARGUMENT, "it has no dim %lld", (long long)*out_axis);
  for (size_t i = 1; i < m->op->operand_count; i++)
    if (!ts_shape_equal(make_operand_of(m, i)->shape, shape))
      return make_error(m, TS_INVALID_ARGUMENT, "its operands differ in shape");
  return TS_SUCCESS;
}

/* An integer type that has every place: if possible the type of an operand that is the places. */
static ts_dtype places_type(const make_call *m, int32_t axis) {
  const int64_t last = make_operand_of(m, 0)->shape->dims[axis] - 1;
  for (size_t i = 1; i < m->op->operand_count; i++) {
    const ts_dtype type = make_operand_of(m, i)->dtype;
    if (!make_is_places(m, i, axis) || !ts_dtype_is_integer(type)) continue;
    const int64_t most = ts_scalar_to_s64(type, ts_dtype_highest(type)); /* below 0: of u64 */
    if (most < 0 || last <= most) return type;
  }
  return last < INT32_MAX ? TS_S32 : TS_S64;
}

/* The elements of an operand at the places. */
static ts_status at_places(const make_call *m, size_t i, int32_t axis, ts_value_id where, ts_value_id *out) {
  *out = where;
  if (i > 0 && make_is_places(m, i, axis) && make_operand_of(m, i)->dtype == make_value_of(m, where)->dtype)
    return TS_SUCCESS;
  return make_take_along(m, m->operands[i].id, where, axis, out);
}

/* The key alone, or the elements of all operands at the positions of the key's sorted elements. */
static ts_status sort_by(const make_call *m, int32_t axis, bool descending, bool total) {
  ts_attrs attrs = {0};
  ts_value_id id, where, key = m->operands[0].id;
  total = total && ts_dtype_is_float(make_operand_of(m, 0)->dtype);
  if (total) TS_TRY(make_total_key(m, key, &key));
  if (m->op->operand_count == 1 && !total) {
    attrs.sort.axis = axis;
    attrs.sort.descending = descending;
    TS_TRY(make_add(m, TS_OP_SORT, (ts_values){&key, 1}, &attrs, &id));
    make_result(m, 0, id);
    return TS_SUCCESS;
  }
  attrs.argsort.axis = axis;
  attrs.argsort.descending = descending;
  attrs.argsort.dtype = places_type(m, axis);
  TS_TRY(make_add(m, TS_OP_ARGSORT, (ts_values){&key, 1}, &attrs, &where));
  for (size_t i = 0; i < m->op->operand_count; i++) {
    TS_TRY(at_places(m, i, axis, where, &id));
    make_result(m, i, id);
  }
  return TS_SUCCESS;
}

ts_status make_in_sort(const make_call *m) {
  ts_text text = {0};
  int64_t axis;
  bool total;
  TS_TRY(check_sort(m, &axis));
  ts_status status = make_signature(m, &m->op->regions[0], &text);
  const char *what = text.data ? text.data : "";
  const order found = find_order(what, (int)(2 * m->op->operand_count), &total);
  if (!status)
    status = found == UNKNOWN ? make_any_sort(m, (int32_t)axis) : sort_by(m, (int32_t)axis, found == DESCENDING, total);
  ts_text_deinit(&text);
  return status;
}

ts_status make_in_top_k(const make_call *m) {
  const mlir_attr *attrs = make_attr(m, "composite_attributes"), *k = make_attr(m, "k");
  ts_attrs made = {0};
  ts_value_id first, key;
  int64_t count;
  if (!k && attrs) k = mlir_find_attr(attrs->items, attrs->count, "k");
  if (!k || m->op->operand_count != 1 || m->op->types.count != 2)
    return make_error(m, TS_INVALID_ARGUMENT, "expected the attribute k, an operand and two results");
  TS_TRY(mlir_attr_int(k, &count));
  if (count < 0 || count > INT32_MAX) return make_error(m, TS_INVALID_ARGUMENT, "k is out of range");
  made.top_k.k = (int32_t)count;
  TS_TRY(make_total_key(m, m->operands[0].id, &key));
  TS_TRY(make_add(m, TS_OP_TOP_K, (ts_values){&key, 1}, &made, &first));
  make_result(m, 0, first);
  make_result(m, 1, first + 1);
  if (key == m->operands[0].id) return TS_SUCCESS;
  TS_TRY(make_take_along(m, m->operands[0].id, first + 1, make_operand_of(m, 0)->shape->rank - 1, &key));
  make_result(m, 0, key);
  return TS_SUCCESS;
}
