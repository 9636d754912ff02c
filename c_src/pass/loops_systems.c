/* LU factors, and what comes from them, as loops (loops.h). */
#include "pass/loops.h"

enum { INDEX, MATRIX, ORDER, PRODUCT, POWER };

/* Row `k` and row `p` change places, where `k` is a scalar and `p` an index for each matrix. */
static val exchange(loops *l, val x, val k, val p) {
  val rows = loops_iota(l, 1, loops_dim(l, x, 1)), of_k = loops_line(l, x, 1, k), of_p = loops_take(l, x, p, 1);
  return loops_pick(l, loops_equal(l, rows, k), of_p, loops_pick(l, loops_equal(l, rows, p), of_k, x));
}

/* The first element of largest size of column k from row k on; NaN is larger than any number. Sizes of the least
 * complex numbers have few digits, so they are compared after a division by a power of two. */
static val find_pivot(loops *l, val column, val k) {
  val above = loops_less(l, loops_iota(l, 1, loops_dim(l, column, 1)), k);
  column = loops_pick(l, above, loops_number(l, l->dtype, 0), column);
  if (l->dtype != l->part) {
    const loops_scaled s = loops_scale(l, column);
    column = loops_pick(l, s.finite, s.a, column);
  }
  return loops_argmax(l, loops_pick(l, above, loops_real_number(l, -1), loops_size(l, column)), 1);
}

/* The quotients of a column and its largest number. Complex numbers that are the least ones of their type have few
 * digits for a quotient, so both are divided by a power of two. */
static val divide_by_pivot(loops *l, val column, val pivot) {
  if (l->dtype == l->part) return loops_quotient(l, column, pivot);
  val power = loops_power_below(l, loops_larger_part(l, pivot));
  return loops_quotient(l, loops_over(l, column, power), loops_over(l, pivot, power));
}

/* Column k below the diagonal becomes the column of L, and the trailing matrix loses its product with row k. */
static val eliminate(loops *l, val a, val k) {
  val rows = loops_iota(l, 1, loops_dim(l, a, 1)), cols = loops_iota(l, 2, loops_dim(l, a, 2));
  val column = loops_line(l, a, 2, k), row = loops_line(l, a, 1, k), pivot = loops_line(l, column, 1, k);
  val below = loops_less(l, k, rows), divides = loops_binary(l, TS_OP_NOT_EQUAL, pivot, loops_number(l, l->dtype, 0));
  val factors = loops_pick(l, divides, divide_by_pivot(l, column, pivot), column);
  val trailing = loops_minus(l, a, loops_product(l, factors, row));
  val is_right = loops_less(l, k, cols), is_column = loops_equal(l, k, cols);
  val changed = loops_pick(l, is_right, trailing, loops_pick(l, is_column, factors, a));
  return loops_pick(l, below, changed, a);
}

static val factor_step(loops *l, val *state) {
  val k = state[INDEX], p = find_pivot(l, loops_line(l, state[MATRIX], 2, k), k);
  state[MATRIX] = eliminate(l, exchange(l, state[MATRIX], k, p), k);
  state[ORDER] = exchange(l, state[ORDER], k, p);
  return p;
}

static void lu_step(loops *l, val *state, const void *context) {
  (void)context;
  (void)factor_step(l, state);
}

/* state[MATRIX]: L below the diagonal, and U; state[ORDER], a column: the row that each row was at first. */
static void start(loops *l, val a, val *state) {
  state[MATRIX] = a;
  state[ORDER] = loops_plus(l, loops_zeros(l, TS_S32, loops_dim(l, a, 0), 1, 1), loops_iota(l, 1, loops_dim(l, a, 1)));
}

static void factor(loops *l, val a, val *state) {
  const loops_for loop = {loops_dim(l, a, 1), lu_step, NULL};
  start(l, a, state);
  loops_run_for(l, &loop, state, 3);
}

void loops_lu(loops *l, val a, val out[3]) {
  val state[LOOPS_STATE], zero = loops_number(l, l->dtype, 0), one = loops_number(l, l->dtype, 1);
  const int64_t n = loops_dim(l, a, 1);
  factor(l, a, state);
  val rows = loops_iota(l, 1, n), cols = loops_iota(l, 2, n);
  val below = loops_less(l, cols, rows), is_place = loops_equal(l, rows, loops_turned(l, state[ORDER]));
  out[0] = loops_pick(l, is_place, one, zero);
  out[1] = loops_pick(l, below, state[MATRIX], loops_pick(l, loops_equal(l, rows, cols), one, zero));
  out[2] = loops_pick(l, below, zero, state[MATRIX]);
}

static val solve_triangle(loops *l, val a, val b, bool lower) {
  val operands[] = {a, b};
  ts_attrs attrs = {.triangular = {.left = true, .lower = lower, .unit = lower}};
  return loops_add(l, TS_OP_TRIANGULAR_SOLVE, operands, 2, &attrs);
}

val loops_solve(loops *l, val a, val b) {
  val state[LOOPS_STATE];
  factor(l, a, state);
  val ordered = loops_take(l, b, state[ORDER], 1);
  return solve_triangle(l, state[MATRIX], solve_triangle(l, state[MATRIX], ordered, true), false);
}

/* ---- the determinant: partial products may be beyond the range, so their powers of two are counted apart */

/* The exponent of a power of two, as s32. */
static val exponent_of(loops *l, val power) {
  const bool wide = l->part == TS_F64;
  const ts_dtype bits = wide ? TS_S64 : TS_S32;
  val word = loops_add(l, TS_OP_BITCAST, &power, 1, &(ts_attrs){.dtype = bits});
  word = loops_binary(l, TS_OP_SHIFT_RIGHT, word, loops_number(l, bits, wide ? 52 : 23));
  return loops_convert(l, loops_minus(l, word, loops_number(l, bits, wide ? 1023 : 127)), TS_S32);
}

static val power_of_exponent(loops *l, val exponent) {
  const bool wide = l->part == TS_F64;
  const ts_dtype bits = wide ? TS_S64 : TS_S32;
  val word = loops_plus(l, loops_convert(l, exponent, bits), loops_number(l, bits, wide ? 1023 : 127));
  word = loops_binary(l, TS_OP_SHIFT_LEFT, word, loops_number(l, bits, wide ? 52 : 23));
  return loops_add(l, TS_OP_BITCAST, &word, 1, &(ts_attrs){.dtype = l->part});
}

/* Moves the power of two of `x`, a number for each matrix, to `exponent`. Zero and numbers that are not finite have
 * none. */
static val split(loops *l, val x, val *exponent) {
  const loops_scaled s = loops_scale(l, x);
  *exponent = loops_plus(l, *exponent, exponent_of(l, s.power));
  return loops_pick(l, s.finite, s.a, x);
}

static void determinant_step(loops *l, val *state, const void *context) {
  (void)context;
  val k = state[INDEX], p = factor_step(l, state);
  val pivot = loops_line(l, loops_line(l, state[MATRIX], 1, k), 2, k);
  val factor = split(l, pivot, &state[POWER]), negative = loops_unary(l, TS_OP_NEGATE, factor);
  factor = loops_pick(l, loops_equal(l, p, k), factor, negative);
  state[PRODUCT] = split(l, loops_product(l, state[PRODUCT], factor), &state[POWER]);
}

/* x times 2^exponent, in three steps as a power alone may be beyond the range. */
static val scale_back(loops *l, val x, val exponent) {
  const int32_t most = l->part == TS_F64 ? 1022 : 126;
  for (int i = 0; i < 3; i++) {
    val low = loops_number(l, TS_S32, -most), high = loops_number(l, TS_S32, most);
    val step = loops_binary(l, TS_OP_MIN, loops_binary(l, TS_OP_MAX, exponent, low), high);
    x = loops_times(l, x, power_of_exponent(l, step));
    exponent = loops_minus(l, exponent, step);
  }
  return x;
}

val loops_determinant(loops *l, val a) {
  val state[LOOPS_STATE];
  const int64_t batch = loops_dim(l, a, 0);
  const loops_for loop = {loops_dim(l, a, 1), determinant_step, NULL};
  start(l, a, state);
  state[PRODUCT] = loops_plus(l, loops_zeros(l, l->dtype, batch, 1, 1), loops_number(l, l->dtype, 1));
  state[POWER] = loops_zeros(l, TS_S32, batch, 1, 1);
  loops_run_for(l, &loop, state, 5);
  return scale_back(l, state[PRODUCT], state[POWER]);
}
