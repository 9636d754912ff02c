/* Tridiagonal systems (LAPACK's gtsv): elimination from the first row on, where two rows are exchanged if the lower one
 * has the larger pivot, and then substitution from the last row on. Both are loops over rows, of all matrices of the
 * batch at once. The first loop replaces the operands by the three diagonals of U, as LAPACK does. Row k of the second
 * diagonal beside the main one lies in row k + 1 of the operand `dl`.
 *
 * Perturbed systems (LAPACK's lagtf and lagts) compare pivots relative to the sizes of their rows. If a division by
 * a pivot would overflow, the pivot is moved away from 0. So a singular matrix has a solution, for inverse iteration.
 */
#include "stablehlo/make_lapack.h"

#include <float.h>

/* The operands' places among the states, after the counter. The lines have a last dim of 1, as the right sides may.
 * Perturbed systems have one more state: the size of row k, and later by how much pivots are moved. */
enum { LOWER = 1, DIAGONAL, UPPER, SIDES, STATES, EXTRA = STATES };

/* ---- rows */

/* Rows from `at` on, by a run-time index, of a tensor with rows in the dim before the last. */
static ts_status rows_at(const make_call *m, ts_value_id x, ts_value_id at, int64_t count, ts_value_id *out) {
  const ts_shape *shape = make_value_of(m, x)->shape;
  const int32_t row = shape->rank - 2, rank = shape->rank;
  ts_value_id operands[1 + TS_MAX_RANK] = {x}, zero;
  ts_attrs attrs = {0};
  ts_shape_copy(&attrs.shape, shape);
  attrs.shape.dims[row] = count;
  TS_TRY(make_integer(m, at, 0, &zero));
  for (int32_t d = 0; d < rank; d++) operands[1 + d] = d == row ? at : zero;
  return make_add(m, TS_OP_DYNAMIC_SLICE, (ts_values){operands, (size_t)rank + 1}, &attrs, out);
}

static ts_status put_rows(const make_call *m, ts_value_id x, ts_value_id rows, ts_value_id at, ts_value_id *out) {
  const int32_t rank = make_value_of(m, x)->shape->rank;
  ts_value_id operands[2 + TS_MAX_RANK] = {x, rows}, zero;
  TS_TRY(make_integer(m, at, 0, &zero));
  for (int32_t d = 0; d < rank; d++) operands[2 + d] = d == rank - 2 ? at : zero;
  return make_add(m, TS_OP_PUT_SLICE, (ts_values){operands, (size_t)rank + 2}, NULL, out);
}

/* Row i of a few. */
static ts_status row_of(const make_call *m, ts_value_id rows, int64_t i, ts_value_id *out) {
  return make_slice(m, rows, make_value_of(m, rows)->shape->rank - 2, (make_range){i, i + 1, 1}, out);
}

static ts_status two_rows(const make_call *m, ts_value_id first, ts_value_id second, ts_value_id *out) {
  ts_attrs attrs = {.axis = make_value_of(m, first)->shape->rank - 2};
  return make_add(m, TS_OP_CONCATENATE, (ts_values){(ts_value_id[]){first, second}, 2}, &attrs, out);
}

/* x - factor * y; the factor has one column. */
static ts_status less(const make_call *m, ts_value_id x, ts_value_id factor, ts_value_id y, ts_value_id *out) {
  const ts_shape *shape = make_value_of(m, x)->shape;
  TS_TRY(make_broadcast_to(m, factor, shape, &factor));
  TS_TRY(make_binary(m, TS_OP_MULTIPLY, factor, y, &y));
  return make_binary(m, TS_OP_SUBTRACT, x, y, out);
}

static ts_status choose(const make_call *m, ts_value_id test, ts_value_id x, ts_value_id y, ts_value_id *out) {
  TS_TRY(make_broadcast_to(m, test, make_value_of(m, x)->shape, &test));
  return make_select(m, test, x, y, out);
}

/* ---- elimination */

/* LAPACK compares complex numbers by the sum of their parts. */
static ts_status size_of(const make_call *m, ts_value_id x, ts_value_id *out) {
  ts_value_id imaginary;
  if (!ts_dtype_is_complex(make_value_of(m, x)->dtype)) return make_unary(m, TS_OP_ABS, x, out);
  TS_TRY(make_unary(m, TS_OP_REAL, x, out));
  TS_TRY(make_unary(m, TS_OP_IMAG, x, &imaginary));
  TS_TRY(make_unary(m, TS_OP_ABS, *out, out));
  TS_TRY(make_unary(m, TS_OP_ABS, imaginary, &imaginary));
  return make_binary(m, TS_OP_ADD, *out, imaginary, out);
}

/* Rows k and k + 1 of the states: the upper row's numbers, and the lower one's. */
typedef struct row_pair {
  ts_value_id upper[STATES], lower[STATES];
  ts_value_id keeps, factor; /* whether the rows stay; the pivot row's factor for the other one */
  ts_value_id scale;         /* of perturbed systems: the size of the lower row */
} row_pair;

/* The lower row stays if its pivot is not the larger one by the sizes of both rows, or is 0. */
static ts_status compare_scaled(const make_call *m, ts_value_id scale, ts_value_id above, ts_value_id below,
                                row_pair *p) {
  ts_value_id size, is_zero;
  TS_TRY(size_of(m, p->lower[DIAGONAL], &size));
  TS_TRY(size_of(m, p->lower[UPPER], &p->scale));
  TS_TRY(make_binary(m, TS_OP_ADD, p->scale, size, &p->scale));
  TS_TRY(make_binary(m, TS_OP_ADD, p->scale, below, &p->scale));
  TS_TRY(make_with(m, TS_OP_EQUAL, below, 0, &is_zero));
  TS_TRY(make_binary(m, TS_OP_DIVIDE, above, scale, &above));
  TS_TRY(make_binary(m, TS_OP_DIVIDE, below, p->scale, &below));
  TS_TRY(make_binary(m, TS_OP_LESS_EQUAL, below, above, &p->keeps));
  return make_binary(m, TS_OP_OR, p->keeps, is_zero, &p->keeps);
}

static ts_status read_pair(const make_call *m, const ts_value_id *state, bool is_perturbed, row_pair *out) {
  ts_value_id rows, above, below, pivot, other, zero, is_zero;
  for (int i = LOWER; i < STATES; i++) {
    TS_TRY(rows_at(m, state[i], state[0], 2, &rows));
    TS_TRY(row_of(m, rows, 0, &out->upper[i]));
    TS_TRY(row_of(m, rows, 1, &out->lower[i]));
  }
  TS_TRY(size_of(m, out->upper[DIAGONAL], &above));
  TS_TRY(size_of(m, out->lower[LOWER], &below));
  if (is_perturbed)
    TS_TRY(compare_scaled(m, state[EXTRA], above, below, out));
  else
    TS_TRY(make_binary(m, TS_OP_GREATER_EQUAL, above, below, &out->keeps));
  TS_TRY(make_select(m, out->keeps, out->upper[DIAGONAL], out->lower[LOWER], &pivot));
  TS_TRY(make_select(m, out->keeps, out->lower[LOWER], out->upper[DIAGONAL], &other));
  TS_TRY(make_binary(m, TS_OP_DIVIDE, other, pivot, &out->factor));
  if (!is_perturbed) return TS_SUCCESS;
  TS_TRY(make_with(m, TS_OP_EQUAL, below, 0, &is_zero)); /* also where the pivot is 0 */
  TS_TRY(make_number(m, out->factor, 0, &zero));
  return make_select(m, is_zero, zero, out->factor, &out->factor);
}

/* The numbers of both rows in the column of the state `i`, after the exchange. */
static ts_status eliminate(const make_call *m, const row_pair *p, ts_value_id upper, ts_value_id lower,
                           ts_value_id *out) {
  ts_value_id first, second;
  TS_TRY(choose(m, p->keeps, upper, lower, &first));
  TS_TRY(choose(m, p->keeps, lower, upper, &second));
  TS_TRY(less(m, second, p->factor, first, &second));
  return two_rows(m, first, second, out);
}

/* The size of the row that comes next: an exchanged one has two numbers. */
static ts_status scale_of_next(const make_call *m, const row_pair *p, ts_value_id diagonal, ts_value_id upper,
                               ts_value_id *out) {
  TS_TRY(size_of(m, diagonal, &diagonal));
  TS_TRY(size_of(m, upper, &upper));
  TS_TRY(make_binary(m, TS_OP_ADD, diagonal, upper, out));
  return make_select(m, p->keeps, p->scale, *out, out);
}

static ts_status eliminate_row(const make_call *m, ts_value_id *state, bool is_perturbed) {
  row_pair p;
  ts_value_id k = state[0], zero, pivot, beside, next, sides, after, lower_row, diagonal;
  TS_TRY(read_pair(m, state, is_perturbed, &p));
  TS_TRY(make_number(m, p.factor, 0, &zero));
  TS_TRY(make_select(m, p.keeps, p.upper[DIAGONAL], p.lower[LOWER], &pivot));
  TS_TRY(eliminate(m, &p, p.upper[UPPER], p.lower[DIAGONAL], &beside)); /* the column of the lower row's diagonal */
  TS_TRY(eliminate(m, &p, zero, p.lower[UPPER], &next));                /* the column after it */
  TS_TRY(eliminate(m, &p, p.upper[SIDES], p.lower[SIDES], &sides));
  TS_TRY(row_of(m, beside, 1, &diagonal));
  TS_TRY(two_rows(m, pivot, diagonal, &pivot));
  TS_TRY(row_of(m, beside, 0, &beside));
  TS_TRY(row_of(m, next, 1, &after));
  TS_TRY(two_rows(m, beside, after, &beside));
  if (is_perturbed) TS_TRY(scale_of_next(m, &p, diagonal, after, &state[EXTRA]));
  TS_TRY(row_of(m, next, 0, &next));
  TS_TRY(make_with_integer(m, TS_OP_ADD, k, 1, &lower_row));
  TS_TRY(put_rows(m, state[LOWER], next, lower_row, &state[LOWER]));
  TS_TRY(put_rows(m, state[DIAGONAL], pivot, k, &state[DIAGONAL]));
  TS_TRY(put_rows(m, state[UPPER], beside, k, &state[UPPER]));
  return put_rows(m, state[SIDES], sides, k, &state[SIDES]);
}

static ts_status eliminate_step(const make_call *m, ts_value_id *state) { return eliminate_row(m, state, false); }
static ts_status scaled_step(const make_call *m, ts_value_id *state) { return eliminate_row(m, state, true); }

/* ---- perturbed pivots */

static bool is_double(ts_dtype type) { return type == TS_F64 || type == TS_C128; }
static double smallest_normal(ts_dtype type) { return is_double(type) ? DBL_MIN : (double)FLT_MIN; }

static ts_status largest(const make_call *m, ts_value_id x, int32_t axis, ts_value_id *out) {
  ts_attrs attrs = {.axes = {.rank = 1, .dims = {axis}}};
  TS_TRY(make_unary(m, TS_OP_ABS, x, &x));
  TS_TRY(make_add(m, TS_OP_REDUCE_MAX, (ts_values){&x, 1}, &attrs, out));
  return make_with_dim(m, *out, axis, out);
}

/* By how much pivots are moved: the rounding error of the largest number of U. Row 0 of `dl` is none of U's. */
static ts_status find_perturbation(const make_call *m, const ts_value_id *state, int64_t n, ts_value_id *out) {
  const ts_value *diagonal = make_value_of(m, state[DIAGONAL]);
  const ts_dtype type = diagonal->dtype;
  const int32_t axis = diagonal->shape->rank - 2;
  ts_value_id second, other;
  TS_TRY(largest(m, state[DIAGONAL], axis, out));
  TS_TRY(largest(m, state[UPPER], axis, &other));
  TS_TRY(make_binary(m, TS_OP_MAX, *out, other, out));
  if (n > 1) {
    TS_TRY(make_slice(m, state[LOWER], axis, (make_range){1, n, 1}, &second));
    TS_TRY(largest(m, second, axis, &other));
    TS_TRY(make_binary(m, TS_OP_MAX, *out, other, out));
  }
  TS_TRY(make_with(m, TS_OP_MULTIPLY, *out, is_double(type) ? DBL_EPSILON : (double)FLT_EPSILON, out));
  return make_with(m, TS_OP_MAX, *out, smallest_normal(type), out);
}

/* A pivot that is 0, or so small that a row's quotient overflows, is moved away from 0 until the row has one. */
static ts_status move_pivot(const make_call *m, ts_value_id pivot, ts_value_id row, ts_value_id perturbation,
                            ts_value_id *out) {
  const ts_value value = *make_value_of(m, pivot);
  ts_value_id size, least, amount, negative, test, moved, real = pivot;
  TS_TRY(make_unary(m, TS_OP_ABS, pivot, &size));
  TS_TRY(largest(m, row, value.shape->rank - 1, &least));
  TS_TRY(make_with(m, TS_OP_MULTIPLY, least, smallest_normal(value.dtype), &least));
  TS_TRY(make_with(m, TS_OP_MIN, least, 1, &least));
  TS_TRY(make_binary(m, TS_OP_SUBTRACT, least, size, &amount));
  TS_TRY(make_binary(m, TS_OP_MAX, amount, perturbation, &amount));
  TS_TRY(make_unary(m, TS_OP_NEGATE, amount, &negative));
  if (ts_dtype_is_complex(value.dtype)) TS_TRY(make_unary(m, TS_OP_REAL, pivot, &real));
  TS_TRY(make_with(m, TS_OP_LESS, real, 0, &test));
  TS_TRY(make_select(m, test, negative, amount, &amount));
  TS_TRY(make_convert(m, amount, value.dtype, &amount));
  TS_TRY(make_binary(m, TS_OP_ADD, pivot, amount, &moved));
  TS_TRY(make_binary(m, TS_OP_LESS, size, least, &test));
  TS_TRY(make_with(m, TS_OP_EQUAL, size, 0, &negative));
  TS_TRY(make_binary(m, TS_OP_OR, test, negative, &test));
  return make_select(m, test, moved, pivot, out);
}

/* ---- substitution. The states have two rows of zeros at the end, and those beside the diagonal none in the last rows.
 */

static ts_status substitute_row(const make_call *m, ts_value_id *state, bool is_perturbed) {
  const int64_t n = make_value_of(m, state[DIAGONAL])->shape->dims[make_value_of(m, state[DIAGONAL])->shape->rank - 2];
  ts_value_id k, lower_row, rows, x, next, numbers;
  TS_TRY(make_integer(m, state[0], n - 3, &k));
  TS_TRY(make_binary(m, TS_OP_SUBTRACT, k, state[0], &k));
  TS_TRY(rows_at(m, state[SIDES], k, 3, &rows));
  TS_TRY(row_of(m, rows, 0, &x));
  TS_TRY(row_of(m, rows, 1, &next));
  TS_TRY(rows_at(m, state[UPPER], k, 1, &numbers));
  TS_TRY(less(m, x, numbers, next, &x));
  TS_TRY(row_of(m, rows, 2, &next));
  TS_TRY(make_with_integer(m, TS_OP_ADD, k, 1, &lower_row));
  TS_TRY(rows_at(m, state[LOWER], lower_row, 1, &numbers));
  TS_TRY(less(m, x, numbers, next, &x));
  TS_TRY(rows_at(m, state[DIAGONAL], k, 1, &numbers));
  if (is_perturbed) TS_TRY(move_pivot(m, numbers, x, state[EXTRA], &numbers));
  TS_TRY(make_broadcast_to(m, numbers, make_value_of(m, x)->shape, &numbers));
  TS_TRY(make_binary(m, TS_OP_DIVIDE, x, numbers, &x));
  return put_rows(m, state[SIDES], x, k, &state[SIDES]);
}

static ts_status substitute_step(const make_call *m, ts_value_id *state) { return substitute_row(m, state, false); }
static ts_status perturbed_step(const make_call *m, ts_value_id *state) { return substitute_row(m, state, true); }

/* Two rows of zeros at the end. */
static ts_status with_rows(const make_call *m, ts_value_id x, ts_value_id *out) {
  const ts_value *value = make_value_of(m, x);
  ts_attrs attrs = {0};
  ts_value_id zero;
  attrs.pad.low.rank = attrs.pad.high.rank = attrs.pad.interior.rank = value->shape->rank;
  attrs.pad.high.dims[value->shape->rank - 2] = 2;
  TS_TRY(make_fill(m, value->dtype, &ts_shape_scalar, 0, &zero));
  return make_add(m, TS_OP_PAD, (ts_values){(ts_value_id[]){x, zero}, 2}, &attrs, out);
}

/* x with 0 in row `at`, from the end on. */
static ts_status without_row(const make_call *m, ts_value_id x, int64_t at, ts_value_id *out) {
  const ts_shape *shape = make_value_of(m, x)->shape;
  ts_shape line = *shape;
  ts_value_id row, zero;
  line.dims[line.rank - 2] = 1;
  TS_TRY(make_integer_of(m, TS_S32, &ts_shape_scalar, shape->dims[shape->rank - 2] - at, &row));
  TS_TRY(make_fill(m, make_value_of(m, x)->dtype, &line, 0, &zero));
  return put_rows(m, x, zero, row, out);
}

/* ---- the call */

static ts_status check_system(const make_call *m) {
  const ts_value *sides = make_operand_of(m, 3);
  const ts_shape *shape = sides->shape;
  bool agree = shape->rank >= 2;
  for (size_t i = 0; i < 3 && agree; i++) {
    const ts_value *line = make_operand_of(m, i);
    agree = line->dtype == sides->dtype && line->shape->rank == shape->rank - 1;
    for (int32_t d = 0; d < line->shape->rank && agree; d++) agree = line->shape->dims[d] == shape->dims[d];
  }
  if (!agree) return make_error(m, TS_INVALID_ARGUMENT, "its lines and its right sides do not agree");
  if (!ts_dtype_is_float(sides->dtype) && !ts_dtype_is_complex(sides->dtype))
    return make_error(m, TS_INVALID_ARGUMENT, "expected floats or complex numbers");
  return TS_SUCCESS;
}

/* The size of the first row. */
static ts_status first_scale(const make_call *m, const ts_value_id *state, ts_value_id *out) {
  ts_value_id beside;
  TS_TRY(row_of(m, state[UPPER], 0, &beside));
  TS_TRY(size_of(m, beside, &beside));
  TS_TRY(row_of(m, state[DIAGONAL], 0, out));
  TS_TRY(size_of(m, *out, out));
  return make_binary(m, TS_OP_ADD, *out, beside, out);
}

/* Eliminates and substitutes, of the lines of the operands. */
static ts_status solve(const make_call *m, make_steps *s, int64_t n) {
  const bool is_perturbed = s->count > STATES;
  s->number = n - 1;
  s->step = is_perturbed ? scaled_step : eliminate_step;
  TS_TRY(without_row(m, s->state[UPPER], 1, &s->state[UPPER])); /* beside the last row there is nothing */
  if (is_perturbed) TS_TRY(first_scale(m, s->state, &s->state[EXTRA]));
  if (n > 1) TS_TRY(make_run_steps(s));
  if (is_perturbed) TS_TRY(find_perturbation(m, s->state, n, &s->state[EXTRA]));
  ts_value_id eliminated[STATES];
  for (int i = LOWER; i < STATES; i++) {
    eliminated[i] = s->state[i];
    TS_TRY(with_rows(m, s->state[i], &s->state[i]));
  }
  s->number = n;
  s->step = is_perturbed ? perturbed_step : substitute_step;
  TS_TRY(make_run_steps(s));
  for (int i = LOWER; i < SIDES; i++) s->state[i] = eliminated[i];
  return make_slice(m, s->state[SIDES], make_value_of(m, s->state[SIDES])->shape->rank - 2, (make_range){0, n, 1},
                    &s->state[SIDES]);
}

ts_status make_gtsv(const make_call *m) {
  if (m->op->operand_count < 4 || m->op->types.count != 5)
    return make_error(m, TS_INVALID_ARGUMENT, "expected 4 operands and 5 results");
  TS_TRY(check_system(m));
  const ts_shape *sides = make_operand_of(m, 3)->shape;
  const int64_t n = sides->dims[sides->rank - 2];
  ts_shape lines = *sides, batch = *sides;
  ts_value_id info;
  make_steps s = {.m = m, .count = STATES};
  lines.rank = sides->rank - 1;
  batch.rank = sides->rank - 2;
  for (size_t i = 0; i < 4; i++) s.state[LOWER + i] = m->operands[i].id;
  if (n > 0) {
    for (int i = LOWER; i < SIDES; i++) TS_TRY(make_with_dim(m, s.state[i], lines.rank, &s.state[i]));
    TS_TRY(solve(m, &s, n));
    for (int i = LOWER; i < SIDES; i++) TS_TRY(make_reshape(m, s.state[i], &lines, &s.state[i]));
    TS_TRY(make_first_zero(m, s.state[DIAGONAL], &info));
  } else {
    TS_TRY(make_integer_of(m, TS_S32, &batch, 0, &info));
  }
  for (size_t i = 0; i < 4; i++) make_result(m, i, s.state[LOWER + i]);
  make_result(m, 4, info);
  return TS_SUCCESS;
}

ts_status make_in_perturbed(const make_call *m) {
  if (m->op->operand_count < 4 || m->op->types.count != 1)
    return make_error(m, TS_INVALID_ARGUMENT, "expected 4 operands and 1 result");
  TS_TRY(check_system(m));
  const ts_value sides = *make_operand_of(m, 3);
  if (!is_double(sides.dtype) && sides.dtype != TS_F32 && sides.dtype != TS_C64)
    return make_error(m, TS_INVALID_ARGUMENT, "expected f32, f64, c64 or c128");
  make_steps s = {.m = m, .count = STATES + 1};
  for (size_t i = 0; i < 4; i++) s.state[LOWER + i] = m->operands[i].id;
  if (ts_shape_elements(sides.shape) > 0) {
    for (int i = LOWER; i < SIDES; i++) TS_TRY(make_with_dim(m, s.state[i], sides.shape->rank - 1, &s.state[i]));
    TS_TRY(solve(m, &s, sides.shape->dims[sides.shape->rank - 2]));
  }
  make_result(m, 0, s.state[SIDES]);
  return TS_SUCCESS;
}
