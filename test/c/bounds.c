#include "bounds.h"

#include "kernel/ref/ref_internal.h"

#include <math.h>
#include <stdio.h>

enum { SLACK = 64 };

/* The interpreter's table has the values of the whole program; low and high are NULL for exact values. */
typedef struct intervals {
  ts_ref_state state;
  ts_buffer **low, **high;
  const bool *split; /* by value: the results of split reductions */
} intervals;

typedef enum end { LOW, HIGH } end;

static ts_buffer *at_end(const intervals *in, ts_value_id id, end which) {
  ts_buffer *own = which == LOW ? in->low[id] : in->high[id];
  return own ? own : in->state.values[id];
}

static bool is_wide(const intervals *in, ts_value_id id) { return in->low[id] != NULL; }

static bool any_wide(const intervals *in, const ts_op *op) {
  for (uint32_t i = 0; i < op->operand_count; i++)
    if (is_wide(in, op->operands[i])) return true;
  return false;
}

/* ---- elements ---- */

static bool is_nan(ts_dtype type, ts_scalar x) { return ts_ref_predicate(TS_OP_IS_NAN, type, x); }

static bool is_less(ts_dtype type, ts_scalar a, ts_scalar b) { return ts_ref_compare(TS_OP_LESS, type, a, b); }

static bool wide_at(const intervals *in, ts_value_id id, int64_t element) {
  if (!is_wide(in, id)) return false;
  return !ts_scalar_same(in->low[id]->dtype, ts_ref_get(in->low[id], element), ts_ref_get(in->high[id], element));
}

/* Any value, NaN too: floats from NaN to infinity, integers from the least to the greatest. */
static void set_unknown(ts_buffer *low, ts_buffer *high, int64_t element) {
  ts_dtype type = low->dtype, part = ts_dtype_part(type);
  ts_scalar nan = ts_dtype_is_float(part) ? ts_scalar_from_f64(part, (double)NAN) : ts_dtype_lowest(part);
  ts_scalar most = ts_dtype_is_float(part) ? ts_scalar_from_f64(part, 1) : ts_dtype_highest(part);
  bool complex = ts_dtype_is_complex(type);
  ts_ref_set(low, element, complex ? ts_ref_complex_join(part, nan, nan) : nan);
  ts_ref_set(high, element, complex ? ts_ref_complex_join(part, most, most) : most);
}

static bool is_unknown(ts_dtype type, ts_scalar low, ts_scalar high) {
  if (ts_dtype_is_complex(type)) return !ts_scalar_same(type, low, high);
  if (ts_dtype_is_float(type)) return is_nan(type, low) != is_nan(type, high);
  return ts_scalar_same(type, low, ts_dtype_lowest(type)) && ts_scalar_same(type, high, ts_dtype_highest(type));
}

static double unit_of(ts_dtype type) { return ldexp(1, 1 - ts_dtype_precision(type)); }

/* The largest number of a float type. */
static double largest(ts_dtype type) {
  ts_scalar most = ts_dtype_highest(type);
  if (isinf(ts_scalar_to_f64(type, most))) most.bits--;
  return ts_scalar_to_f64(type, most);
}

/* The terms of a sum, which its interval tells the size of, may overflow in another order. */
static bool may_overflow(ts_dtype type, double low, double high) {
  ts_dtype wide = ts_dtype_accumulator(type);
  bool finite = fabs(low) <= largest(type) && fabs(high) <= largest(type);
  return !finite || !((high / SLACK - low / SLACK) / unit_of(wide) <= largest(wide));
}

static void order(ts_dtype type, ts_scalar whole, ts_scalar *low, ts_scalar *high) {
  if (is_less(type, whole, *low)) *low = whole;
  if (is_less(type, *high, whole)) *high = whole;
}

/* Makes an interval of the computed bounds: it includes the whole program's element, and is unknown if an end is
 * NaN. */
static void settle_element(const ts_buffer *whole, ts_buffer *low, ts_buffer *high, int64_t i) {
  ts_dtype type = whole->dtype;
  ts_scalar w = ts_ref_get(whole, i), l = ts_ref_get(low, i), h = ts_ref_get(high, i);
  if (ts_scalar_same(type, l, h) && ts_scalar_same(type, w, l)) return;
  bool wrong = ts_dtype_is_complex(type) || is_nan(type, l) || is_nan(type, h) || is_nan(type, w);
  if (!wrong) order(type, w, &l, &h);
  if (!wrong && ts_dtype_is_float(type))
    wrong = may_overflow(type, ts_scalar_to_f64(type, l), ts_scalar_to_f64(type, h));
  ts_ref_set(low, i, l);
  ts_ref_set(high, i, h);
  if (wrong) set_unknown(low, high, i);
}

/* ---- ops at the ends of intervals ---- */

static ts_status compute(const intervals *in, const ts_op *op, ts_buffer *const *operands, ts_buffer *result) {
  (void)in;
  return ts_ref_compute(&(ts_ref_call){.op = op, .operands = operands, .results = &result, .result = result});
}

/* With the end that bit i of `ends` says for operand i. */
static ts_status compute_at(const intervals *in, const ts_op *op, uint32_t ends, ts_buffer *result) {
  ts_buffer **operands;
  TS_TRY(TS_NEW_ARRAY(op->operand_count, &operands));
  for (uint32_t i = 0; i < op->operand_count; i++)
    operands[i] = at_end(in, op->operands[i], ends >> (i < 32 ? i : 31) & 1 ? HIGH : LOW);
  ts_status status = compute(in, op, operands, result);
  ts_free(operands);
  return status;
}

/* Ops that do not fall when an operand rises. */
static ts_status rising(const intervals *in, const ts_op *op, ts_buffer *low, ts_buffer *high) {
  TS_TRY(compute_at(in, op, 0, low));
  return compute_at(in, op, UINT32_MAX, high);
}

/* The least and the greatest of the candidates; NaN if one is NaN. */
static void enclose(const ts_buffer *more, ts_buffer *low, ts_buffer *high) {
  for (int64_t i = 0; i < ts_shape_elements(&more->shape); i++) {
    ts_scalar x = ts_ref_get(more, i);
    bool nan = is_nan(more->dtype, x);
    if (nan || is_less(more->dtype, x, ts_ref_get(low, i))) ts_ref_set(low, i, x);
    if (nan || is_less(more->dtype, ts_ref_get(high, i), x)) ts_ref_set(high, i, x);
  }
}

/* Ops that rise or fall in each of at most two operands: the extremes are at the corners. */
static ts_status corners(const intervals *in, const ts_op *op, ts_buffer *low, ts_buffer *high) {
  ts_buffer *corner;
  TS_TRY(rising(in, op, low, high));
  TS_TRY(ts_buffer_create(in->state.pool, low->dtype, &low->shape, &corner));
  ts_status status = TS_SUCCESS;
  memcpy(corner->data, low->data, (size_t)ts_shape_elements(&low->shape) * ts_dtype_size(low->dtype));
  enclose(high, low, high);
  enclose(corner, low, high);
  for (uint32_t ends = 1; !status && op->operand_count == 2 && ends < 3; ends++) {
    status = compute_at(in, op, ends, corner);
    if (!status) enclose(corner, low, high);
  }
  ts_buffer_release(corner);
  return status;
}

/* ---- elements without such a rule ---- */

static bool has_zero(const intervals *in, ts_value_id id, int64_t i) {
  ts_dtype type = at_end(in, id, LOW)->dtype;
  double low = ts_scalar_to_f64(type, ts_ref_get(at_end(in, id, LOW), i));
  double high = ts_scalar_to_f64(type, ts_ref_get(at_end(in, id, HIGH), i));
  return !(low > 0 || high < 0);
}

static bool overlap(const intervals *in, const ts_op *op, int64_t i) {
  ts_value_id a = op->operands[0], b = op->operands[1];
  ts_dtype type = at_end(in, a, LOW)->dtype;
  return !is_less(type, ts_ref_get(at_end(in, a, HIGH), i), ts_ref_get(at_end(in, b, LOW), i)) &&
         !is_less(type, ts_ref_get(at_end(in, b, HIGH), i), ts_ref_get(at_end(in, a, LOW), i));
}

static bool unknown_at(const intervals *in, ts_value_id id, int64_t i) {
  return is_wide(in, id) && is_unknown(in->low[id]->dtype, ts_ref_get(in->low[id], i), ts_ref_get(in->high[id], i));
}

/* Whether nothing is known of an element of an elementwise op. */
static bool loses(const intervals *in, const ts_op *op, int64_t i) {
  bool wide = false, unknown = false;
  for (uint32_t k = 0; k < op->operand_count; k++) {
    wide |= wide_at(in, op->operands[k], i);
    unknown |= unknown_at(in, op->operands[k], i);
  }
  if (!wide || unknown) return unknown;
  switch ((int)op->code) {
  case TS_OP_DIVIDE: return has_zero(in, op->operands[1], i);
  case TS_OP_EQUAL:
  case TS_OP_NOT_EQUAL: return overlap(in, op, i);
  case TS_OP_IS_NAN:
  case TS_OP_IS_INFINITY: return false;
  default: return true;
  }
}

/* The whole program's element, or none at all. */
static void some_lost(const intervals *in, const ts_op *op, ts_buffer *low, ts_buffer *high) {
  for (int64_t i = 0; i < ts_shape_elements(&low->shape); i++)
    if (loses(in, op, i)) set_unknown(low, high, i);
}

static void all_lost(ts_buffer *low, ts_buffer *high) {
  for (int64_t i = 0; i < ts_shape_elements(&low->shape); i++) set_unknown(low, high, i);
}

/* ---- select ---- */

static void select_element(const intervals *in, const ts_op *op, ts_buffer *low, ts_buffer *high, int64_t i) {
  const ts_value_id *o = op->operands;
  ts_scalar ends[2][2];
  for (int k = 0; k < 2; k++)
    for (int which = 0; which < 2; which++) ends[k][which] = ts_ref_get(at_end(in, o[k + 1], (end)which), i);
  if (!wide_at(in, o[0], i)) {
    int k = ts_ref_truth(TS_U8, ts_ref_get(in->state.values[o[0]], i)) ? 0 : 1;
    ts_ref_set(low, i, ends[k][LOW]);
    ts_ref_set(high, i, ends[k][HIGH]);
  } else if (unknown_at(in, o[1], i) || unknown_at(in, o[2], i)) {
    set_unknown(low, high, i);
  } else {
    ts_ref_set(low, i, is_less(low->dtype, ends[0][LOW], ends[1][LOW]) ? ends[0][LOW] : ends[1][LOW]);
    ts_ref_set(high, i, is_less(low->dtype, ends[0][HIGH], ends[1][HIGH]) ? ends[1][HIGH] : ends[0][HIGH]);
  }
}

/* NaN on one side only: the interval has no order. */
static void select_all(const intervals *in, const ts_op *op, ts_buffer *low, ts_buffer *high) {
  for (int64_t i = 0; i < ts_shape_elements(&low->shape); i++) {
    bool nans[2];
    for (int k = 0; k < 2; k++) {
      const ts_buffer *x = in->state.values[op->operands[k + 1]];
      nans[k] = is_nan(x->dtype, ts_ref_get(x, i));
    }
    select_element(in, op, low, high, i);
    if (nans[0] != nans[1] && wide_at(in, op->operands[0], i)) set_unknown(low, high, i);
  }
}

/* ---- sums ---- */

/* Replaces an operand of a sum, in f64, by ones, absolute values, or radii; of a product, by the numbers that let it
 * grow and those that let it shrink: the others are 1. */
typedef enum replaced { ONES, SIZES, RADII, LARGE, SMALL } replaced;

static double replacement(const intervals *in, ts_value_id id, int64_t i, replaced by) {
  ts_dtype type = in->state.values[id]->dtype;
  double whole = ts_scalar_to_f64(type, ts_ref_get(in->state.values[id], i));
  double low = ts_scalar_to_f64(type, ts_ref_get(at_end(in, id, LOW), i));
  double high = ts_scalar_to_f64(type, ts_ref_get(at_end(in, id, HIGH), i));
  if (by == ONES) return 1;
  if (by == SIZES) return fabs(low) > fabs(high) ? fabs(low) : fabs(high);
  if (by == LARGE) return fabs(whole) > 1 ? fabs(whole) : 1;
  if (by == SMALL) return fabs(whole) < 1 ? fabs(whole) : 1;
  if (!wide_at(in, id, i)) return 0;
  if (unknown_at(in, id, i)) return (double)NAN;
  return whole - low > high - whole ? whole - low : high - whole;
}

static ts_status replace(const intervals *in, ts_value_id id, replaced by, ts_buffer **out) {
  TS_TRY(ts_buffer_create(in->state.pool, TS_F64, &in->state.values[id]->shape, out));
  for (int64_t i = 0; i < ts_shape_elements(&(*out)->shape); i++)
    ts_ref_set(*out, i, ts_scalar_from_f64(TS_F64, replacement(in, id, i, by)));
  return TS_SUCCESS;
}

/* The op on replaced operands, in f64; indices stay. */
static ts_status sum_of(const intervals *in, const ts_op *op, const replaced by[3], ts_buffer *out) {
  ts_buffer *operands[3] = {NULL};
  ts_status status = TS_SUCCESS;
  for (uint32_t i = 0; !status && i < op->operand_count; i++) {
    if (op->code == TS_OP_INDEXED_ADD && i == 1)
      ts_buffer_retain(operands[i] = in->state.values[op->operands[i]]);
    else
      status = replace(in, op->operands[i], by[i], &operands[i]);
  }
  if (!status) status = compute(in, op, operands, out);
  for (uint32_t i = 0; i < op->operand_count; i++) ts_buffer_release(operands[i]);
  return status;
}

enum { FACTORS = 3 };

/* `radius`: for each factor of a term, the sum with that factor's radii. */
typedef struct sums {
  ts_buffer *count, *size, *radius[FACTORS];
} sums;

static double get_f64(const ts_buffer *buffer, int64_t i) { return ((const double *)buffer->data)[i]; }

/* How many operands a term of the sum is the product of. */
static int factors_of(const ts_op *op) {
  switch ((int)op->code) {
  case TS_OP_DOT:
  case TS_OP_WIDE_DOT:
  case TS_OP_CONV: return 2;
  case TS_OP_SCALED_DOT: return FACTORS;
  default: return 1;
  }
}

static ts_status find_sums(const intervals *in, const ts_op *op, const ts_shape *shape, sums *s) {
  ts_buffer **all[2 + FACTORS] = {&s->count, &s->size, &s->radius[0], &s->radius[1], &s->radius[2]};
  const int factors = factors_of(op);
  for (int i = 0; i < 2 + factors; i++) TS_TRY(ts_buffer_create(in->state.pool, TS_F64, shape, all[i]));
  TS_TRY(sum_of(in, op, (const replaced[3]){ONES, ONES, ONES}, s->count));
  TS_TRY(sum_of(in, op, (const replaced[3]){SIZES, SIZES, SIZES}, s->size));
  if (factors == 1) return sum_of(in, op, (const replaced[3]){RADII, RADII, RADII}, s->radius[0]);
  for (int i = 0; i < factors; i++) {
    replaced by[3] = {SIZES, SIZES, SIZES};
    by[i] = RADII;
    TS_TRY(sum_of(in, op, by, s->radius[i]));
  }
  return TS_SUCCESS;
}

static double radius_at(const sums *s, const ts_op *op, ts_dtype type, double whole, int64_t i) {
  ts_dtype wide = op->code == TS_OP_INDEXED_ADD ? type : ts_dtype_accumulator(type);
  double count = get_f64(s->count, i), own = 0;
  for (int k = 0; k < factors_of(op); k++) own += get_f64(s->radius[k], i);
  double least = ts_scalar_to_f64(type, (ts_scalar){.bits = 1}) + ts_scalar_to_f64(wide, (ts_scalar){.bits = 1});
  double narrow = wide == type ? 0 : unit_of(type) * fabs(whole);
  return own * (1 + count / (SLACK / 2)) + (count + SLACK) * (unit_of(wide) * get_f64(s->size, i) + least) + narrow;
}

static ts_status sum(const intervals *in, const ts_op *op, ts_buffer *low, ts_buffer *high) {
  sums s = {0};
  ts_dtype type = low->dtype;
  ts_status status = find_sums(in, op, &low->shape, &s);
  for (int64_t i = 0; !status && i < ts_shape_elements(&low->shape); i++) {
    double whole = ts_scalar_to_f64(type, ts_ref_get(low, i)), radius = radius_at(&s, op, type, whole, i);
    ts_ref_set(low, i, ts_scalar_from_f64(type, whole - radius));
    ts_ref_set(high, i, ts_scalar_from_f64(type, whole + radius));
    if (!isfinite(whole) || !isfinite(radius)) set_unknown(low, high, i);
  }
  ts_buffer *all[2 + FACTORS] = {s.count, s.size, s.radius[0], s.radius[1], s.radius[2]};
  for (int i = 0; i < 2 + FACTORS; i++) ts_buffer_release(all[i]);
  return status;
}

/* Whether the products of some of the factors may leave the range of normal numbers. */
static ts_status may_leave(const intervals *in, const ts_op *op, const ts_shape *shape, ts_buffer *out) {
  const double most = largest(ts_dtype_accumulator(out->dtype)), least = 4 / most; /* the least normal number */
  ts_buffer *of[2] = {NULL};
  ts_status status = TS_SUCCESS;
  for (int k = 0; !status && k < 2; k++) {
    const replaced by = k ? SMALL : LARGE;
    status = ts_buffer_create(in->state.pool, TS_F64, shape, &of[k]);
    if (!status) status = sum_of(in, op, (const replaced[3]){by, by, by}, of[k]);
  }
  for (int64_t i = 0; !status && i < ts_shape_elements(shape); i++) {
    const bool leaves = !(get_f64(of[0], i) < most / 4) || !(get_f64(of[1], i) > 4 * least);
    ts_ref_set(out, i, ts_scalar_from_f64(out->dtype, leaves));
  }
  for (int k = 0; k < 2; k++) ts_buffer_release(of[k]);
  return status;
}

/* A product that is split: each factor is rounded once more, and may underflow or overflow on the way. */
static ts_status product(const intervals *in, const ts_op *op, ts_buffer *low, ts_buffer *high) {
  const int64_t factors = ts_shape_elements(&in->state.values[op->operands[0]]->shape);
  ts_dtype type = low->dtype, wide = ts_dtype_accumulator(type);
  TS_TRY(may_leave(in, op, &low->shape, high));
  for (int64_t i = 0; i < ts_shape_elements(&low->shape); i++) {
    const bool leaves = ts_scalar_to_f64(type, ts_ref_get(high, i)) > 0;
    double whole = ts_scalar_to_f64(type, ts_ref_get(low, i));
    double radius = fabs(whole) * ((double)(factors + SLACK) * unit_of(wide) + (wide == type ? 0 : unit_of(type)));
    ts_ref_set(low, i, ts_scalar_from_f64(type, whole - radius));
    ts_ref_set(high, i, ts_scalar_from_f64(type, whole + radius));
    if (leaves || !isnormal(whole)) set_unknown(low, high, i);
  }
  return TS_SUCCESS;
}

/* ---- the rule of each op ---- */

/* Values of wide integers may wrap in arithmetic; their order equals the order of their origins in other ops. */
static bool is_arithmetic_on_floats(const intervals *in, const ts_op *op) {
  return ts_dtype_is_float(in->state.values[op->operands[0]]->dtype);
}

/* Integers keep their value, so that order is kept. */
static bool keeps_order(const intervals *in, const ts_op *op) {
  ts_dtype from = in->state.values[op->operands[0]]->dtype, to = op->attrs->dtype;
  if (ts_dtype_is_complex(from) || ts_dtype_is_complex(to)) return false;
  if (!ts_dtype_is_integer(from) || !ts_dtype_is_integer(to)) return true;
  bool sign = ts_dtype_is_signed(from) == ts_dtype_is_signed(to) || ts_dtype_is_signed(to);
  return sign && ts_dtype_precision(to) >= ts_dtype_precision(from);
}

typedef enum rule { RISING, CORNERS, CHOICE, SUM, PRODUCT, EACH, NONE } rule;

static bool indices_are_wide(const intervals *in, const ts_op *op) {
  uint32_t first = op->code == TS_OP_PUT_SLICE ? 2 : 1;
  uint32_t last = op->code == TS_OP_TAKE || op->code == TS_OP_TAKE_ALONG || op->code == TS_OP_INDEXED_ADD ||
                          op->code == TS_OP_INDEXED_PUT
                      ? 2
                      : op->operand_count;
  for (uint32_t i = first; i < last; i++)
    if (is_wide(in, op->operands[i])) return true;
  return false;
}

static bool some_unknown(const intervals *in, ts_value_id id) {
  for (int64_t i = 0; i < ts_shape_elements(&in->state.values[id]->shape); i++)
    if (unknown_at(in, id, i)) return true;
  return false;
}

static rule rule_of_indexed(const intervals *in, const ts_op *op) {
  if (indices_are_wide(in, op)) return NONE;
  if (op->code != TS_OP_INDEXED_ADD) return RISING;
  return is_arithmetic_on_floats(in, op) ? SUM : NONE;
}

static rule rule_of_unary(const intervals *in, const ts_op *op) {
  switch ((int)op->code) {
  case TS_OP_COS:
  case TS_OP_SIN:
  case TS_OP_TAN:
  case TS_OP_COSH: return EACH;
  case TS_OP_ABS:
  case TS_OP_NEGATE: return is_arithmetic_on_floats(in, op) ? CORNERS : EACH;
  default: return CORNERS;
  }
}

static rule rule_of_binary(const intervals *in, const ts_op *op) {
  switch ((int)op->code) {
  case TS_OP_MIN:
  case TS_OP_MAX: return RISING;
  case TS_OP_ADD:
  case TS_OP_SUBTRACT:
  case TS_OP_MULTIPLY:
  case TS_OP_DIVIDE: return is_arithmetic_on_floats(in, op) ? CORNERS : EACH;
  case TS_OP_GREATER:
  case TS_OP_LESS:
  case TS_OP_GREATER_EQUAL:
  case TS_OP_LESS_EQUAL: return CORNERS;
  default: return EACH;
  }
}

static rule rule_of_fold(const intervals *in, const ts_op *op, const ts_buffer *result) {
  switch ((int)op->code) {
  case TS_OP_REDUCE_MAX:
  case TS_OP_REDUCE_MIN:
  case TS_OP_CUMULATIVE_MAX:
  case TS_OP_CUMULATIVE_MIN:
  case TS_OP_WINDOW_MAX:
  case TS_OP_WINDOW_MIN: return RISING;
  case TS_OP_SORT: return some_unknown(in, op->operands[0]) ? NONE : RISING;
  case TS_OP_REDUCE_SUM:
  case TS_OP_CUMULATIVE_SUM:
  case TS_OP_WINDOW_SUM:
  case TS_OP_DOT:
  case TS_OP_WIDE_DOT:
  case TS_OP_SCALED_DOT:
  case TS_OP_CONV: return ts_dtype_is_float(result->dtype) ? SUM : NONE;
  case TS_OP_REDUCE_PRODUCT: return ts_dtype_is_float(result->dtype) && !any_wide(in, op) ? PRODUCT : NONE;
  default: return NONE;
  }
}

static rule rule_of(const intervals *in, const ts_op *op, const ts_buffer *result) {
  switch ((int)ts_op_get_class(op->code)) {
  case TS_CLASS_SHAPE:
  case TS_CLASS_CLAMP: return RISING;
  case TS_CLASS_INDEXED: return rule_of_indexed(in, op);
  case TS_CLASS_SELECT: return CHOICE;
  case TS_CLASS_UNARY_FLOAT:
  case TS_CLASS_UNARY: return rule_of_unary(in, op);
  case TS_CLASS_BINARY:
  case TS_CLASS_BINARY_FLOAT:
  case TS_CLASS_COMPARE: return rule_of_binary(in, op);
  case TS_CLASS_CONVERT: return op->code == TS_OP_CONVERT && keeps_order(in, op) ? CORNERS : EACH;
  default: return ts_op_is_elementwise(op->code) ? EACH : rule_of_fold(in, op, result);
  }
}

/* Functions may be wrong by some units in the last place, and so fall where they should rise. */
static void widen_function(const ts_op *op, ts_buffer *low, ts_buffer *high) {
  if (ts_op_get_class(op->code) != TS_CLASS_UNARY_FLOAT || op->code == TS_OP_SQRT) return;
  for (int64_t i = 0; i < ts_shape_elements(&low->shape); i++) {
    ts_scalar ends[2] = {ts_ref_get(low, i), ts_ref_get(high, i)};
    if (ts_scalar_same(low->dtype, ends[0], ends[1])) continue;
    double l = ts_scalar_to_f64(low->dtype, ends[0]), h = ts_scalar_to_f64(low->dtype, ends[1]);
    ts_ref_set(low, i, ts_scalar_from_f64(low->dtype, l - 8 * unit_of(low->dtype) * fabs(l)));
    ts_ref_set(high, i, ts_scalar_from_f64(low->dtype, h + 8 * unit_of(low->dtype) * fabs(h)));
  }
}

/* Elements with an unknown operand, or a divisor that may be 0; abs falls to 0 between its corners. */
static void lose_corners(const intervals *in, const ts_op *op, ts_buffer *low, ts_buffer *high) {
  for (int64_t i = 0; i < ts_shape_elements(&low->shape); i++) {
    bool lost = false;
    for (uint32_t k = 0; k < op->operand_count; k++) lost |= unknown_at(in, op->operands[k], i);
    if (op->code == TS_OP_DIVIDE && wide_at(in, op->operands[1], i)) lost |= has_zero(in, op->operands[1], i);
    if (op->code == TS_OP_ABS && !lost && has_zero(in, op->operands[0], i)) ts_ref_set(low, i, (ts_scalar){.bits = 0});
    if (lost) set_unknown(low, high, i);
  }
}

/* Both ends begin as the whole program's result. */
static ts_status apply(const intervals *in, const ts_op *op, ts_buffer *low, ts_buffer *high) {
  rule r = rule_of(in, op, low);
  switch (r) {
  case RISING: return rising(in, op, low, high);
  case CORNERS:
    TS_TRY(corners(in, op, low, high));
    widen_function(op, low, high);
    lose_corners(in, op, low, high);
    return TS_SUCCESS;
  case CHOICE: select_all(in, op, low, high); return TS_SUCCESS;
  case SUM: return sum(in, op, low, high);
  case PRODUCT: return product(in, op, low, high);
  case EACH: some_lost(in, op, low, high); return TS_SUCCESS;
  case NONE: break;
  }
  all_lost(low, high);
  return TS_SUCCESS;
}

/* ---- programs ---- */

static ts_status copy_whole(const intervals *in, ts_value_id id, ts_buffer **out) {
  const ts_buffer *whole = in->state.values[id];
  TS_TRY(ts_buffer_create(in->state.pool, whole->dtype, &whole->shape, out));
  memcpy((*out)->data, whole->data, (size_t)ts_shape_elements(&whole->shape) * ts_dtype_size(whole->dtype));
  return TS_SUCCESS;
}

static void set_ends(intervals *in, ts_value_id id, ts_buffer *low, ts_buffer *high) {
  ts_buffer_release(in->low[id]);
  ts_buffer_release(in->high[id]);
  in->low[id] = low;
  in->high[id] = high;
}

static ts_status make_ends(intervals *in, ts_value_id id) {
  ts_buffer *low, *high = NULL;
  TS_TRY(copy_whole(in, id, &low));
  ts_status status = copy_whole(in, id, &high);
  if (status) ts_buffer_release(low);
  if (!status) set_ends(in, id, low, high);
  return status;
}

static ts_status visit_op(intervals *in, const ts_op *op) {
  TS_TRY(ts_ref_run_op(&in->state, op));
  bool bounded = any_wide(in, op) || in->split[op->first_result];
  for (uint32_t i = 0; i < op->result_count; i++) {
    ts_value_id id = op->first_result + i;
    set_ends(in, id, NULL, NULL);
    if (!bounded) continue;
    TS_TRY(make_ends(in, id));
    if (op->result_count == 1)
      TS_TRY(apply(in, op, in->low[id], in->high[id]));
    else
      all_lost(in->low[id], in->high[id]);
    for (int64_t k = 0; k < ts_shape_elements(&in->low[id]->shape); k++)
      settle_element(in->state.values[id], in->low[id], in->high[id], k);
  }
  return TS_SUCCESS;
}

/* The value `to` becomes `from`, which may be of another region. */
static void copy_value(intervals *in, ts_value_id from, ts_value_id to) {
  ts_buffer *all[3] = {in->state.values[from], in->low[from], in->high[from]};
  for (int i = 0; i < 3; i++)
    if (all[i]) ts_buffer_retain(all[i]);
  ts_ref_set_value(&in->state, to, all[0]);
  set_ends(in, to, all[1], all[2]);
}

static ts_status visit_region(intervals *in, ts_region_id id);

static ts_status visit_on(intervals *in, ts_region_id id, const ts_value_id *args) {
  const ts_region *region = ts_graph_region(in->state.graph, id);
  for (size_t i = 0; i < region->params.count; i++) copy_value(in, args[i], region->params.data[i]);
  return visit_region(in, id);
}

static void copy_results(intervals *in, ts_region_id id, const ts_op *op) {
  const ts_region *region = ts_graph_region(in->state.graph, id);
  for (uint32_t i = 0; i < op->result_count; i++) copy_value(in, region->results.data[i], op->first_result + i);
}

/* Whichever way the others go. */
static ts_status lose_results(intervals *in, const ts_op *op) {
  for (uint32_t i = 0; i < op->result_count; i++) {
    ts_value_id id = op->first_result + i;
    TS_TRY(make_ends(in, id));
    all_lost(in->low[id], in->high[id]);
  }
  return TS_SUCCESS;
}

static ts_status visit_cond(intervals *in, const ts_op *op) {
  ts_value_id p = op->operands[0];
  bool truth = ts_ref_truth(TS_U8, ts_ref_get(in->state.values[p], 0)), lost = wide_at(in, p, 0);
  ts_region_id id = op->attrs->regions.regions[truth ? 0 : 1];
  TS_TRY(visit_on(in, id, op->operands + 1));
  copy_results(in, id, op);
  return lost ? lose_results(in, op) : TS_SUCCESS;
}

static ts_status visit_while(intervals *in, const ts_op *op) {
  ts_region_id condition = op->attrs->regions.regions[0], body = op->attrs->regions.regions[1];
  ts_value_id p = ts_graph_region(in->state.graph, condition)->results.data[0];
  ts_status status = TS_SUCCESS;
  bool lost = false;
  ts_value_id *variables;
  TS_TRY(TS_NEW_ARRAY(op->operand_count, &variables));
  for (uint32_t i = 0; i < op->operand_count; i++) {
    variables[i] = op->first_result + i;
    copy_value(in, op->operands[i], variables[i]);
  }
  while (!status) {
    status = visit_on(in, condition, variables);
    lost |= !status && wide_at(in, p, 0);
    if (status || !ts_ref_truth(TS_U8, ts_ref_get(in->state.values[p], 0))) break;
    status = visit_on(in, body, variables);
    if (!status) copy_results(in, body, op);
  }
  ts_free(variables);
  return status || !lost ? status : lose_results(in, op);
}

static ts_status visit(intervals *in, const ts_op *op) {
  switch ((int)op->code) {
  case TS_OP_WHILE: return visit_while(in, op);
  case TS_OP_COND: return visit_cond(in, op);
  case TS_OP_CALL:
    TS_TRY(visit_on(in, op->attrs->regions.regions[0], op->operands));
    copy_results(in, op->attrs->regions.regions[0], op);
    return TS_SUCCESS;
  default: return visit_op(in, op);
  }
}

static ts_status visit_region(intervals *in, ts_region_id id) {
  const ts_region *region = ts_graph_region(in->state.graph, id);
  for (size_t i = 0; i < region->ops.count; i++) TS_TRY(visit(in, ts_graph_op(in->state.graph, region->ops.data[i])));
  return TS_SUCCESS;
}

static void take_results(const intervals *in, bound *out) {
  const ts_region *root = ts_graph_region(in->state.graph, TS_ROOT);
  for (size_t i = 0; i < root->results.count; i++) {
    ts_value_id id = root->results.data[i];
    out[i] = (bound){in->state.values[id], in->low[id], in->high[id]};
    ts_buffer_retain(out[i].whole);
    if (out[i].low) ts_buffer_retain(out[i].low), ts_buffer_retain(out[i].high);
  }
}

static ts_status run(intervals *in, const ts_graph *graph, const tensors *args, bound *out) {
  const ts_region *root = ts_graph_region(graph, TS_ROOT);
  for (size_t i = 0; i < args->count; i++) {
    ts_buffer_retain(args->data[i]);
    ts_ref_set_value(&in->state, root->params.data[i], args->data[i]);
  }
  TS_TRY(visit_region(in, TS_ROOT));
  take_results(in, out);
  return TS_SUCCESS;
}

static void deinit(intervals *in, size_t count) {
  for (size_t i = 0; i < count && in->state.values && in->low && in->high; i++) {
    ts_buffer_release(in->state.values[i]);
    ts_buffer_release(in->low[i]);
    ts_buffer_release(in->high[i]);
  }
  ts_free(in->state.values);
  ts_free(in->low);
  ts_free(in->high);
}

ts_status bounds_run(const ts_graph *graph, const tensors *args, const ts_shard_report *report, bound *out) {
  size_t count = graph->values.count;
  intervals in = {.state = {.graph = graph, .pool = ts_pool_default()}};
  bool *split = NULL;
  ts_status status = TS_NEW_ARRAY(count, &split);
  if (!status) status = TS_NEW_ARRAY(count, &in.state.values);
  if (!status) status = TS_NEW_ARRAY(count, &in.low);
  if (!status) status = TS_NEW_ARRAY(count, &in.high);
  for (size_t i = 0; !status && i < report->split.count; i++) split[report->split.data[i].result] = true;
  in.split = split;
  if (!status) status = run(&in, graph, args, out);
  deinit(&in, count);
  ts_free(split);
  return status;
}

void bounds_release(bound *bounds, size_t count) {
  for (size_t i = 0; i < count; i++) {
    ts_buffer_release(bounds[i].whole);
    ts_buffer_release(bounds[i].low);
    ts_buffer_release(bounds[i].high);
  }
}

/* ---- comparing ---- */

static bool element_holds(const bound *b, const ts_buffer *got, int64_t i, bound_counts *counts) {
  ts_dtype type = got->dtype;
  ts_scalar x = ts_ref_get(got, i), low = ts_ref_get(b->low, i), high = ts_ref_get(b->high, i);
  if (ts_scalar_same(type, low, high)) {
    counts->exact++;
    return ts_scalar_same(type, x, low) ||
           ts_scalar_same(type, x, ts_ref_get(b->whole, i)) || /* zeros differ in sign */
           (is_nan(type, x) && is_nan(type, low));
  }
  if (is_unknown(type, low, high)) {
    counts->unknown++;
    return true;
  }
  counts->bounded++;
  return !is_nan(type, x) && !is_less(type, x, low) && !is_less(type, high, x);
}

static bool within(const bound *b, const ts_buffer *got, bound_counts *counts, char out_message[TS_COMPARE_TEXT]) {
  for (int64_t i = 0; i < ts_shape_elements(&got->shape); i++) {
    if (element_holds(b, got, i, counts)) continue;
    double numbers[4] = {0};
    const ts_buffer *all[4] = {got, b->whole, b->low, b->high};
    for (int k = 0; k < 4 && !ts_dtype_is_complex(got->dtype); k++)
      numbers[k] = ts_scalar_to_f64(got->dtype, ts_ref_get(all[k], i));
    snprintf(out_message, TS_COMPARE_TEXT, "%s: element %lld is %.17g, of the whole %.17g, not within %.17g to %.17g",
             TS_SHAPE_STR(got->dtype, &got->shape), (long long)i, numbers[0], numbers[1], numbers[2], numbers[3]);
    return false;
  }
  return true;
}

bool bounds_hold(const bound *b, const ts_buffer *got, bound_counts *counts, char out_message[TS_COMPARE_TEXT]) {
  bool alike = got->dtype == b->whole->dtype && ts_shape_equal(&got->shape, &b->whole->shape);
  if (alike && b->low) return within(b, got, counts, out_message);
  counts->exact += ts_shape_elements(&got->shape);
  return ts_compare_buffers(got, b->whole, 0, out_message);
}
