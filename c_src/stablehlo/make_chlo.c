/* Functions of chlo that are made of several ops: the high half of a product, the Bessel function i1e, a product of
 * matrices whose rows choose between groups. */
#include "stablehlo/make.h"

#include <math.h>

/* ---- mulhi */

/* Of u64: with x = a + b 2^32, y = c + d 2^32 the high half of the product is bd + (ad >> 32) + (bc >> 32) and a carry.
 */
static ts_status high_of_64(const make_call *m, ts_value_id x, ts_value_id y, ts_value_id *out) {
  ts_value_id low[2], high[2], sum, part, product;
  const ts_value_id xy[2] = {x, y};
  for (int i = 0; i < 2; i++) {
    TS_TRY(make_with(m, TS_OP_AND, xy[i], 4294967295.0, &low[i]));
    TS_TRY(make_with(m, TS_OP_SHIFT_RIGHT, xy[i], 32, &high[i]));
  }
  TS_TRY(make_binary(m, TS_OP_MULTIPLY, high[0], high[1], out));
  TS_TRY(make_binary(m, TS_OP_MULTIPLY, low[0], low[1], &sum));
  TS_TRY(make_with(m, TS_OP_SHIFT_RIGHT, sum, 32, &sum));
  for (int i = 0; i < 2; i++) {
    TS_TRY(make_binary(m, TS_OP_MULTIPLY, low[i], high[1 - i], &product));
    TS_TRY(make_with(m, TS_OP_AND, product, 4294967295.0, &part));
    TS_TRY(make_binary(m, TS_OP_ADD, sum, part, &sum));
    TS_TRY(make_with(m, TS_OP_SHIFT_RIGHT, product, 32, &part));
    TS_TRY(make_binary(m, TS_OP_ADD, *out, part, out));
  }
  TS_TRY(make_with(m, TS_OP_SHIFT_RIGHT, sum, 32, &sum));
  return make_binary(m, TS_OP_ADD, *out, sum, out);
}

/* Less y where x is negative: x stands for x + 2^64 there. */
static ts_status less_if_negative(const make_call *m, ts_value_id x, ts_value_id y, ts_value_id *inout) {
  ts_value_id negative, less;
  TS_TRY(make_with(m, TS_OP_LESS, x, 0, &negative));
  TS_TRY(make_binary(m, TS_OP_SUBTRACT, *inout, y, &less));
  return make_select(m, negative, less, *inout, inout);
}

static ts_status mulhi(const make_call *m) {
  ts_value_id x[2], id;
  TS_TRY(make_count_operands(m, 2));
  const ts_dtype type = make_operand_of(m, 0)->dtype;
  const int bits = ts_dtype_bits(type);
  if (!ts_dtype_is_integer(type) || make_operand_of(m, 1)->dtype != type)
    return make_error(m, TS_INVALID_ARGUMENT, "expected integers of one type");
  const bool is_signed = !ts_dtype_is_unsigned(type);
  for (int i = 0; i < 2; i++)
    if (bits < 64)
      TS_TRY(make_convert(m, m->operands[i].id, is_signed ? TS_S64 : TS_U64, &x[i]));
    else
      TS_TRY(make_bitcast(m, m->operands[i].id, TS_U64, &x[i]));
  if (bits < 64) {
    TS_TRY(make_binary(m, TS_OP_MULTIPLY, x[0], x[1], &id));
    TS_TRY(make_with(m, TS_OP_SHIFT_RIGHT, id, bits, &id));
    TS_TRY(make_convert(m, id, type, &id));
  } else {
    TS_TRY(high_of_64(m, x[0], x[1], &id));
    TS_TRY(make_bitcast(m, id, type, &id));
    for (int i = 0; i < 2 && is_signed; i++) TS_TRY(less_if_negative(m, m->operands[i].id, m->operands[1 - i].id, &id));
  }
  make_result(m, 0, id);
  return TS_SUCCESS;
}

/* ---- bessel_i1e: Chebyshev series in double, computed with mpmath: of exp(-x) I1(x) / x on [0, 8], and of
 * exp(-x) I1(x) sqrt(x) from there on, in 1 / x. */

static const double near_terms[] = {
    0.25258718644363365,    -0.17641651835783406,    0.10264365868984709,    -0.052945981208094989,
    0.024726449030626516,   -0.010564084894626197,   0.0041564229443128882,  -0.0015135724506312532,
    0.00051228595616857576, -0.00016176081582589674, 4.7815651075500542e-05, -1.3273163656039436e-05,
    3.4702513081376785e-06, -8.5687202646954547e-07, 2.0032947535521353e-07, -4.4450591287963281e-08,
    9.3815373864957726e-09, -1.8872497517228294e-09, 3.6255902815521172e-10, -6.6634897235020271e-11,
    1.1736186298890901e-11, -1.9839743977649436e-12, 3.2237933659455748e-13, -5.0421855047279118e-14,
    7.6006842947354077e-15, -1.1055969477353862e-15, 1.5536319577362005e-16, -2.111421214358166e-17};
static const double far_terms[] = {
    0.77857623501828011,     -0.0097610974913614687,  -0.00011058893876262371, -3.8825648088776906e-06,
    -2.5122362378702088e-07, -2.6314688468895196e-08, -3.835380385964237e-09,  -5.5897434621965838e-10,
    -1.8974958123505413e-11, 3.2526035830154884e-11,  1.4125807436613782e-11,  2.0356285441470896e-12,
    -7.1985517762459084e-13, -4.0835511110921974e-13, -2.1015418427726643e-14, 4.272440016711951e-14,
    1.0420276984128802e-14,  -3.8144030724370075e-15, -1.8803547755107825e-15, 3.3082023109209285e-16,
    2.9626289976459501e-16,  -3.2095259219934238e-17, -4.6503053684893586e-17, 4.4143483230717077e-18,
    7.5172963108421052e-18,  -9.3141788673268842e-19, -1.242193275194891e-18,  2.4142767194548486e-19};

/* Clenshaw's sum of a series without half of its first term, of t in [-1, 1]. */
static ts_status series(const make_call *m, ts_value_id t, const double *terms, size_t count, ts_value_id *out) {
  ts_value_id twice, last, before, next;
  TS_TRY(make_binary(m, TS_OP_ADD, t, t, &twice));
  TS_TRY(make_number(m, t, 0, &last));
  before = last;
  for (size_t i = count - 1; i > 0; i--) {
    TS_TRY(make_binary(m, TS_OP_MULTIPLY, twice, last, &next));
    TS_TRY(make_binary(m, TS_OP_SUBTRACT, next, before, &next));
    before = last;
    TS_TRY(make_with(m, TS_OP_ADD, next, terms[i], &last));
  }
  TS_TRY(make_binary(m, TS_OP_MULTIPLY, t, last, &next));
  TS_TRY(make_binary(m, TS_OP_SUBTRACT, next, before, &next));
  return make_with(m, TS_OP_ADD, next, terms[0] / 2, out);
}

static ts_status bessel_i1e(const make_call *m) {
  ts_value_id x, size, t, inner, outer, number, test;
  TS_TRY(make_count_operands(m, 1));
  const ts_dtype type = make_operand_of(m, 0)->dtype;
  if (!ts_dtype_is_float(type)) return make_error(m, TS_INVALID_ARGUMENT, "expected floats");
  TS_TRY(make_convert(m, m->operands[0].id, TS_F64, &x));
  TS_TRY(make_unary(m, TS_OP_ABS, x, &size));
  TS_TRY(make_with(m, TS_OP_DIVIDE, size, 4, &t));
  TS_TRY(make_with(m, TS_OP_SUBTRACT, t, 1, &t));
  TS_TRY(series(m, t, near_terms, sizeof near_terms / sizeof *near_terms, &inner));
  TS_TRY(make_binary(m, TS_OP_MULTIPLY, inner, size, &inner));
  TS_TRY(make_number(m, size, 16, &number));
  TS_TRY(make_binary(m, TS_OP_DIVIDE, number, size, &t));
  TS_TRY(make_with(m, TS_OP_SUBTRACT, t, 1, &t));
  TS_TRY(series(m, t, far_terms, sizeof far_terms / sizeof *far_terms, &outer));
  TS_TRY(make_unary(m, TS_OP_SQRT, size, &number));
  TS_TRY(make_binary(m, TS_OP_DIVIDE, outer, number, &outer));
  TS_TRY(make_with(m, TS_OP_LESS_EQUAL, size, 8, &test));
  TS_TRY(make_select(m, test, inner, outer, &inner));
  TS_TRY(make_unary(m, TS_OP_NEGATE, inner, &outer));
  TS_TRY(make_with(m, TS_OP_LESS, x, 0, &test));
  TS_TRY(make_select(m, test, outer, inner, &inner));
  TS_TRY(make_with(m, TS_OP_EQUAL, x, 0, &test)); /* with its sign */
  TS_TRY(make_select(m, test, x, inner, &inner));
  TS_TRY(make_convert(m, inner, type, &inner));
  make_result(m, 0, inner);
  return TS_SUCCESS;
}

/* ---- ragged_dot, whose groups are of consecutive rows of the left operand */

typedef struct ragged {
  ts_attrs dot;
  int32_t lhs_axis, rhs_axis; /* rows, groups: in the operands */
  int32_t row, group;         /* the same in the product of all rows and all groups */
} ragged;

static bool has(const ts_dims *dims, int64_t dim) {
  for (int32_t i = 0; i < dims->rank; i++)
    if (dims->dims[i] == dim) return true;
  return false;
}

/* The place of a free dim among the free dims of its operand. */
static int32_t free_place(const ts_dims *batch, const ts_dims *contract, int32_t axis) {
  int32_t place = 0;
  for (int32_t d = 0; d < axis; d++) place += !has(batch, d) && !has(contract, d);
  return place;
}

static ts_status read_ragged(const make_call *m, ragged *out) {
  const mlir_attr *numbers = make_attr(m, "ragged_dot_dimension_numbers");
  ts_dims rows, groups;
  TS_TRY(make_count_operands(m, 3));
  if (!numbers) return make_error(m, TS_INVALID_ARGUMENT, "expected the attribute ragged_dot_dimension_numbers");
  TS_TRY(make_dot_numbers(numbers, &out->dot));
  TS_TRY(make_dict_ints(numbers, "lhs_ragged_dimensions", &rows));
  TS_TRY(make_dict_ints(numbers, "rhs_group_dimensions", &groups));
  const ts_dims *a = &out->dot.dot.lhs_batch, *b = &out->dot.dot.lhs_contract;
  const ts_dims *c = &out->dot.dot.rhs_batch, *d = &out->dot.dot.rhs_contract;
  const ts_shape *lhs = make_operand_of(m, 0)->shape, *rhs = make_operand_of(m, 1)->shape;
  if (rows.rank != 1 || rows.dims[0] < 0 || rows.dims[0] >= lhs->rank || has(a, rows.dims[0]) || has(b, rows.dims[0]) ||
      groups.rank != 1)
    return make_error(m, TS_UNIMPLEMENTED, "it is known of groups of rows, and of no other dims");
  if (groups.dims[0] < 0 || groups.dims[0] >= rhs->rank || has(c, groups.dims[0]) || has(d, groups.dims[0]))
    return make_error(m, TS_INVALID_ARGUMENT, "its dim of groups is wrong");
  out->lhs_axis = (int32_t)rows.dims[0];
  out->rhs_axis = (int32_t)groups.dims[0];
  out->row = a->rank + free_place(a, b, out->lhs_axis);
  out->group = lhs->rank - b->rank + free_place(c, d, out->rhs_axis);
  return TS_SUCCESS;
}

/* Whether a row is of a group, of the shape of all products: between the sum of the sizes before and that with its own.
 */
static ts_status is_of_group(const make_call *m, const ragged *r, const ts_shape *shape, ts_value_id *out) {
  ts_value_id sizes = m->operands[2].id, end, begin, row;
  const ts_dims axes = {.rank = 1, .dims = {r->group}};
  ts_attrs scan = {0};
  TS_TRY(make_convert(m, sizes, TS_S64, &sizes));
  scan.scan.axis = 0;
  TS_TRY(make_add(m, TS_OP_CUMULATIVE_SUM, (ts_values){&sizes, 1}, &scan, &end));
  TS_TRY(make_binary(m, TS_OP_SUBTRACT, end, sizes, &begin));
  TS_TRY(make_broadcast(m, end, shape, &axes, &end));
  TS_TRY(make_broadcast(m, begin, shape, &axes, &begin));
  TS_TRY(make_iota(m, TS_S64, shape, r->row, &row));
  TS_TRY(make_binary(m, TS_OP_LESS, row, end, &end));
  TS_TRY(make_binary(m, TS_OP_GREATER_EQUAL, row, begin, &begin));
  return make_binary(m, TS_OP_AND, begin, end, out);
}

static ts_status ragged_dot(const make_call *m) {
  ragged r = {0};
  ts_value_id id, test, zero;
  ts_attrs axes = {0};
  TS_TRY(read_ragged(m, &r));
  const ts_value *sizes = make_operand_of(m, 2);
  if (sizes->shape->rank != 1 || !ts_dtype_is_integer(sizes->dtype) ||
      sizes->shape->dims[0] != make_operand_of(m, 1)->shape->dims[r.rhs_axis])
    return make_error(m, TS_UNIMPLEMENTED, "expected a size for each group, without batches");
  TS_TRY(make_dot(m, &r.dot, &id));
  TS_TRY(is_of_group(m, &r, make_value_of(m, id)->shape, &test));
  TS_TRY(make_number(m, id, 0, &zero));
  TS_TRY(make_select(m, test, id, zero, &id));
  axes.axes.rank = 1;
  axes.axes.dims[0] = r.group;
  TS_TRY(make_add(m, TS_OP_REDUCE_SUM, (ts_values){&id, 1}, &axes, &id));
  make_result(m, 0, id);
  return TS_SUCCESS;
}

/* ---- ops of one operand */

static ts_status simple(const make_call *m) {
  ts_value_id x, id;
  TS_TRY(make_count_operands(m, 1));
  x = m->operands[0].id;
  if (mlir_token_is(m->op->name, "chlo.conj")) {
    TS_TRY(make_conjugate(m, x, &id));
  } else if (mlir_token_is(m->op->name, "chlo.square")) {
    TS_TRY(make_binary(m, TS_OP_MULTIPLY, x, x, &id));
  } else {
    if (!ts_dtype_is_float(make_value_of(m, x)->dtype)) return make_error(m, TS_INVALID_ARGUMENT, "expected floats");
    TS_TRY(make_with(m, TS_OP_EQUAL, x, mlir_token_is(m->op->name, "chlo.is_pos_inf") ? INFINITY : -INFINITY, &id));
  }
  make_result(m, 0, id);
  return TS_SUCCESS;
}

ts_status make_in_chlo(const make_call *m) {
  if (mlir_token_is(m->op->name, "chlo.mulhi")) return mulhi(m);
  if (mlir_token_is(m->op->name, "chlo.bessel_i1e")) return bessel_i1e(m);
  return mlir_token_is(m->op->name, "chlo.ragged_dot") ? ragged_dot(m) : simple(m);
}
