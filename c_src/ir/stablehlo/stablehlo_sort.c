/* sort, argsort and top_k as a stable sort of the operand, for the last two together with the positions. XLA finds its
 * own top_k in the sort and the slice. */
#include "ir/stablehlo/stablehlo_internal.h"

#include <math.h>

/* The same number for all NaNs, and for both zeros. */
static hlo_value united(hlo *h, hlo_value x) {
  const ts_dtype type = (ts_dtype)x.element;
  hlo_value zero = hlo_constant(h, type, &x.shape, ts_scalar_from_f64(type, 0));
  hlo_value nan = hlo_constant(h, type, &x.shape, ts_scalar_from_f64(type, NAN));
  hlo_value of_zero[] = {hlo_compare(h, "EQ", x, zero), zero, x};
  hlo_value number = hlo_op(h, "stablehlo.select", type, &x.shape, of_zero, 3);
  hlo_value of_nan[] = {hlo_compare(h, "NE", x, x), nan, number};
  return hlo_op(h, "stablehlo.select", type, &x.shape, of_nan, 3);
}

/* Whether a stands before b. A NaN is greater than any number, and no NaN stands before another one. In this form XLA
 * for GPUs knows the order, and sorts by digits. */
static hlo_value stands_before(hlo *h, bool descending, hlo_value a, hlo_value b) {
  const char *direction = descending ? "GT" : "LT";
  if (!ts_dtype_is_float((ts_dtype)a.element)) return hlo_compare(h, direction, a, b);
  a = united(h, a);
  b = united(h, b);
  return hlo_compare_as(h, "TOTALORDER", direction, a, b);
}

/* The comparator gets a pair of elements of each operand, and compares the first operand's pair. */
static void print_comparator(hlo *h, bool descending, const hlo_value *operands, size_t count) {
  hlo_value params[4];
  for (size_t i = 0; i < 2 * count; i++) params[i] = hlo_new_value(h, operands[i / 2].element, &ts_shape_scalar);
  hlo_region_begin(h, true, params, 2 * count);
  hlo_value before = stands_before(h, descending, params[0], params[1]);
  hlo_region_end(h, true, &before, 1);
}

/* A sort along an axis by the first operand. */
static void sort_by_first(hlo *h, int32_t axis, bool descending, const hlo_value *operands, size_t count,
                          hlo_value *results) {
  for (size_t i = 0; i < count; i++) results[i] = operands[i];
  hlo_name_results(hlo_begin(h, "stablehlo.sort", count, operands, count), results, count);
  ts_text_format(h->out, " <{dimension = %d : i64, is_stable = true}>", axis);
  print_comparator(h, descending, operands, count);
  hlo_end(h, operands, count, results, count);
}

/* The type in which positions are sorted: the wanted type if it can represent them all. */
static ts_dtype position_type(ts_dtype wanted, int64_t count) {
  int64_t last = ts_scalar_to_s64(wanted, ts_dtype_highest(wanted));
  return last < 0 || count - 1 <= last ? wanted : TS_S64; /* below 0: u64 */
}

/* Sorts the operand and the positions along an axis. */
static void sort_with_positions(const hlo_call *call, int32_t axis, bool descending, ts_dtype wanted,
                                hlo_value *results) {
  hlo_value operands[2] = {hlo_operand(call, 0)};
  const ts_shape *shape = &operands[0].shape;
  operands[1] = hlo_iota(call->h, position_type(wanted, shape->dims[axis]), shape, axis);
  sort_by_first(call->h, axis, descending, operands, 2, results);
}

/* The first elements along the last axis. */
static hlo_value first_of(const hlo_call *call, hlo_value x) {
  ts_dims start = {.rank = x.shape.rank}, stride = start;
  for (int32_t d = 0; d < x.shape.rank; d++) start.dims[d] = 0, stride.dims[d] = 1;
  return hlo_op_with(call->h, "stablehlo.slice", (hlo_type){x.element, call->shape}, (hlo_values){&x, 1},
                     "start_indices = %s, limit_indices = %s, strides = %s", HLO_ARRAY(&start), HLO_ARRAY(call->shape),
                     HLO_ARRAY(&stride));
}

ts_status hlo_sort(const hlo_call *call, hlo_value *out) {
  const ts_attrs *attrs = call->op->attrs;
  hlo_value x = hlo_operand(call, 0), both[2];
  switch ((ts_ops_SORT)call->op->code) {
  case TS_OP_SORT: sort_by_first(call->h, attrs->sort.axis, attrs->sort.descending, &x, 1, out); return TS_SUCCESS;
  case TS_OP_ARGSORT:
    sort_with_positions(call, attrs->argsort.axis, attrs->argsort.descending, attrs->argsort.dtype, both);
    *out = hlo_convert(call->h, both[1], call->element);
    return TS_SUCCESS;
  case TS_OP_TOP_K:
    sort_with_positions(call, x.shape.rank - 1, true, TS_S32, both);
    for (int i = 0; i < 2; i++) out[i] = first_of(call, both[i]);
    return TS_SUCCESS;
  }
  return hlo_no_form(call);
}
