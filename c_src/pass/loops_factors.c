/* QR by Householder's reflections, eigenvalues and singular values by Jacobi's rotations, as loops (loops.h). The
 * methods are those of kernel/ref/ref_linalg_factors.h. One step rotates all pairs of lines i and i + n/2. Then the
 * lines move, so that every two lines are a pair once in a sweep (Brent and Luk, SIAM J. Sci. Stat. Comput. 6, 1985).
 */
#include "pass/loops.h"

#include <math.h>

static double epsilon_of(const loops *l) { return l->part == TS_F64 ? 0x1p-53 : 0x1p-24; }

static val sum_of_squares(loops *l, val x, int32_t axis) {
  val size = loops_size(l, x);
  return loops_reduce(l, TS_OP_REDUCE_SUM, loops_product(l, size, size), axis);
}

static val root(loops *l, val x) { return loops_unary(l, TS_OP_SQRT, x); }
static val real(loops *l, double number) { return loops_real_number(l, number); }
static val larger(loops *l, val x, val y) { return loops_binary(l, TS_OP_MAX, x, y); }

/* ---- qr */

enum { INDEX, MATRIX, VECTORS, FACTORS, SIGNS };

/* The reflection I - factor v v^H of a column, followed by a change of sign of row k where `negates`. */
typedef struct reflection {
  val v, factor, negates;
} reflection;

/* A column: its first number in row k, the sum of squares below, and the norm. */
typedef struct lead {
  val first, size, below_squared, norm;
} lead;

/* The first number of v for a column that becomes +norm, without cancellation. */
static val positive_start(loops *l, const lead *c) {
  val quotient = loops_quotient(l, c->below_squared, loops_plus(l, c->first, c->norm));
  val positive = loops_less(l, real(l, 0), c->first);
  return loops_pick(l, positive, loops_unary(l, TS_OP_NEGATE, quotient), loops_minus(l, c->first, c->norm));
}

/* The first number of v for a column that becomes a number of the opposite phase. */
static val opposite_start(loops *l, const lead *c) {
  return loops_plus(l, c->first, loops_times(l, loops_phase(l, c->first), c->norm));
}

/* A reflection makes the first number of a real column positive. It keeps the sign if the rest of the column is zero up
 * to 1e-5 of the first number. Then the reflection changes the sign, and `negates` changes it back. Squares that may be
 * subnormal count as zero. */
static val start_of_real(loops *l, const lead *c, reflection *r, val *exists) {
  val below = root(l, c->below_squared), kept = loops_less(l, below, loops_product(l, real(l, 1e-5), c->size));
  *exists = loops_less(l, real(l, l->part == TS_F64 ? 0x1p-900 : 0x1p-100), c->below_squared);
  r->negates = loops_both(l, *exists, kept);
  return loops_pick(l, kept, opposite_start(l, c), positive_start(l, c));
}

static val start_of_complex(loops *l, const lead *c, reflection *r, val *exists) {
  *exists = loops_less(l, real(l, 0), c->norm);
  r->negates = loops_less(l, c->norm, real(l, 0)); /* never */
  return opposite_start(l, c);
}

/* The reflection of column k from row k on. A multiple of the column has the same reflection, so the column is divided
 * by a power of two near its largest part. */
static reflection make_reflection(loops *l, val numbers, val k) {
  val rows = loops_iota(l, 1, loops_dim(l, numbers, 1)), none = loops_number(l, l->dtype, 0), exists;
  val x = loops_scale(l, loops_pick(l, loops_less(l, rows, k), none, numbers)).a, is_first = loops_equal(l, rows, k);
  lead c = {.first = loops_line(l, x, 1, k)};
  c.size = loops_size(l, c.first);
  c.below_squared = sum_of_squares(l, loops_pick(l, is_first, none, x), 1);
  c.norm = root(l, loops_plus(l, loops_product(l, c.size, c.size), c.below_squared));
  reflection r;
  val start = l->dtype == l->part ? start_of_real(l, &c, &r, &exists) : start_of_complex(l, &c, &r, &exists);
  r.v = loops_pick(l, is_first, start, x);
  val square = loops_pick(l, exists, sum_of_squares(l, r.v, 1), real(l, 1));
  r.factor = loops_pick(l, exists, loops_quotient(l, real(l, 2), square), real(l, 0));
  return r;
}

static val negate_row(loops *l, val a, val k, val negates) {
  val row = loops_equal(l, loops_iota(l, 1, loops_dim(l, a, 1)), k);
  return loops_pick(l, loops_both(l, row, negates), loops_unary(l, TS_OP_NEGATE, a), a);
}

static val reflect(loops *l, val a, val v, val factor) {
  val products = loops_reduce(l, TS_OP_REDUCE_SUM, loops_product(l, loops_conjugate(l, v), a), 1);
  return loops_minus(l, a, loops_product(l, loops_times(l, v, factor), products));
}

static val put_column(loops *l, val a, val k, val column) {
  return loops_pick(l, loops_equal(l, loops_iota(l, 2, loops_dim(l, a, 2)), k), column, a);
}

static void qr_step(loops *l, val *state, const void *context) {
  (void)context;
  val k = state[INDEX];
  const reflection r = make_reflection(l, loops_line(l, state[MATRIX], 2, k), k);
  state[MATRIX] = negate_row(l, reflect(l, state[MATRIX], r.v, r.factor), k, r.negates);
  state[VECTORS] = put_column(l, state[VECTORS], k, r.v);
  state[FACTORS] = put_column(l, state[FACTORS], k, r.factor);
  state[SIGNS] = put_column(l, state[SIGNS], k, r.negates);
}

/* Q is the product of all steps and of columns of the identity matrix. The last step is applied first. */
static void q_step(loops *l, val *state, const void *context) {
  const int64_t *steps = context;
  val k = loops_minus(l, loops_number(l, TS_S32, (double)(*steps - 1)), state[INDEX]);
  val v = loops_line(l, state[VECTORS], 2, k), factor = loops_line(l, state[FACTORS], 2, k);
  val negates = loops_line(l, state[SIGNS], 2, k);
  state[MATRIX] = reflect(l, negate_row(l, state[MATRIX], k, negates), v, factor);
}

void loops_qr_of_scaled(loops *l, val a, bool full, val out[2]) {
  const int64_t batch = loops_dim(l, a, 0), m = loops_dim(l, a, 1), n = loops_dim(l, a, 2), least = m < n ? m : n;
  const bool is_real = l->dtype == l->part;
  const int64_t kept = full ? m : least, steps = !is_real && m == n ? n - 1 : least, room = steps > 0 ? steps : 1;
  const loops_for forward = {steps, qr_step, NULL}, backward = {steps, q_step, &steps};
  val state[LOOPS_STATE] = {[MATRIX] = a,
                            [VECTORS] = loops_zeros(l, l->dtype, batch, m, room),
                            [FACTORS] = loops_zeros(l, l->part, batch, 1, room),
                            [SIGNS] = loops_zeros(l, TS_U8, batch, 1, room)};
  loops_run_for(l, &forward, state, 5);
  val is_below = loops_less(l, loops_iota(l, 2, n), loops_iota(l, 1, kept));
  out[1] = loops_pick(l, is_below, loops_number(l, l->dtype, 0), loops_slice(l, state[MATRIX], 1, 0, kept));
  state[MATRIX] = loops_eye(l, batch, m, kept);
  loops_run_for(l, &backward, state, 5);
  out[0] = state[MATRIX];
}

void loops_qr(loops *l, val a, bool full, val out[2]) {
  const loops_scaled s = loops_scale(l, a);
  loops_qr_of_scaled(l, s.a, full, out);
  out[0] = loops_finite_or_nan(l, &s, out[0]);
  out[1] = loops_finite_or_nan(l, &s, loops_times(l, out[1], s.power));
}

/* ---- rotations of Jacobi */

/* p becomes c p - s turn q, and q becomes s p + c turn q. For each matrix a column of pairs. */
typedef struct rotation {
  val c, s, turn, tangent;
} rotation;

/* For products [alpha, gamma; conj(gamma), beta] of p and q; the identity where `none`. */
static rotation make_rotation(loops *l, val alpha, val beta, val gamma, val none) {
  val one = real(l, 1), zero = real(l, 0), size = loops_pick(l, none, one, loops_size(l, gamma));
  val zeta = loops_quotient(l, loops_minus(l, beta, alpha), loops_plus(l, size, size));
  val wide = root(l, loops_plus(l, one, loops_product(l, zeta, zeta)));
  val t = loops_quotient(l, one, loops_plus(l, loops_size(l, zeta), wide));
  t = loops_pick(l, loops_less(l, zeta, zero), loops_unary(l, TS_OP_NEGATE, t), t);
  t = loops_pick(l, none, zero, t);
  val c = loops_quotient(l, one, root(l, loops_plus(l, one, loops_product(l, t, t))));
  val turn = loops_pick(l, none, loops_number(l, l->dtype, 1), loops_conjugate(l, loops_phase(l, gamma)));
  return (rotation){c, loops_product(l, c, t), turn, t};
}

static rotation turned(loops *l, const rotation *r) {
  return (rotation){loops_turned(l, r->c), loops_turned(l, r->s), loops_turned(l, r->turn),
                    loops_turned(l, r->tangent)};
}

static val half(loops *l, val x, int32_t axis, int which) {
  const int64_t h = loops_dim(l, x, axis) / 2;
  return loops_slice(l, x, axis, which * h, (which + 1) * h);
}

/* Lines i and i + h of an axis of 2 h lines are a pair. The rotation is a column for axis 1, and a row for axis 2. */
static val rotate(loops *l, val x, int32_t axis, const rotation *r) {
  val p = half(l, x, axis, 0), q = loops_product(l, r->turn, half(l, x, axis, 1));
  val parts[] = {loops_minus(l, loops_times(l, p, r->c), loops_times(l, q, r->s)),
                 loops_plus(l, loops_times(l, p, r->s), loops_times(l, q, r->c))};
  return loops_concatenate(l, axis, parts, 2);
}

/* The next round: line 0 stays, and the other lines move by one place of a circle. After 2 h - 1 rounds every line is
 * at its first place. */
static val move_on(loops *l, val x, int32_t axis) {
  const int64_t n = loops_dim(l, x, axis), h = n / 2;
  if (h < 2) return x;
  val parts[] = {loops_slice(l, x, axis, 0, 1), loops_slice(l, x, axis, h, h + 1), loops_slice(l, x, axis, 1, h - 1),
                 loops_slice(l, x, axis, h + 1, n), loops_slice(l, x, axis, h - 1, h)};
  return loops_concatenate(l, axis, parts, 5);
}

enum { MOST_SWEEPS = 40 }; /* fifteen are enough for any matrix */
enum { SWEEP, TURNED, BASIS, AGAIN };

static val sweeps_again(loops *l, const val *state, const void *context) {
  (void)context;
  val few = loops_less(l, state[SWEEP], loops_number(l, TS_S32, MOST_SWEEPS));
  return loops_both(l, few, loops_binary(l, TS_OP_NOT_EQUAL, state[AGAIN], loops_number(l, TS_U8, 0)));
}

/* Sweeps until one leaves state[AGAIN] at 0. */
static void sweep_all(loops *l, void (*sweep)(loops *l, val *state, const void *context), val *state) {
  const loops_while loop = {sweeps_again, sweep, NULL};
  state[SWEEP] = loops_number(l, TS_S32, 0);
  state[AGAIN] = loops_number(l, TS_U8, 1);
  loops_run(l, &loop, state, 4);
}

/* One sweep: every pair meets once. state[SWEEP] counts rounds here. */
static void all_rounds(loops *l, void (*round)(loops *l, val *state, const void *context), val *state) {
  const loops_for rounds = {loops_dim(l, state[BASIS], 2) - 1, round, NULL};
  val sweep = loops_plus(l, state[SWEEP], loops_number(l, TS_S32, 1));
  loops_run_for(l, &rounds, state, 4);
  state[SWEEP] = sweep;
}

/* u8[]: whether it holds of any element */
static val any(loops *l, val x) {
  ts_attrs attrs = {.axes = {3, {0, 1, 2}}};
  return loops_add(l, TS_OP_REDUCE_ANY, &x, 1, &attrs);
}

/* An axis of even length, with zeros at its end. */
static val make_even(loops *l, val x, int32_t axis) {
  if (loops_dim(l, x, axis) % 2 == 0) return x;
  ts_dtype dtype = l->status ? TS_F32 : ts_graph_value(l->graph, x)->dtype;
  val zeros =
      loops_zeros(l, dtype, loops_dim(l, x, 0), axis == 1 ? 1 : loops_dim(l, x, 1), axis == 2 ? 1 : loops_dim(l, x, 2));
  val parts[] = {x, zeros};
  return loops_concatenate(l, axis, parts, 2);
}

/* Columns in descending order of the sizes of `keys`, a row for each matrix. */
static val order_of(loops *l, val keys) {
  val sizes = loops_size(l, keys);
  ts_attrs attrs = {.argsort = {.axis = 2, .descending = true, .dtype = TS_S32}};
  return loops_add(l, TS_OP_ARGSORT, &sizes, 1, &attrs);
}

/* The number that makes the first element of largest size of each column positive. */
static val turn_of(loops *l, val x) {
  val first = loops_take(l, x, loops_argmax(l, loops_size(l, x), 1), 1);
  return loops_conjugate(l, loops_phase(l, first));
}

/* ---- eigh */

/* The diagonal of a square block, as a column. */
static val diagonal(loops *l, val x) {
  const int64_t n = loops_dim(l, x, 1);
  val here = loops_equal(l, loops_iota(l, 1, n), loops_iota(l, 2, n));
  return loops_reduce(l, TS_OP_REDUCE_SUM, loops_pick(l, here, x, loops_number(l, l->dtype, 0)), 2);
}

static val largest_beside_diagonal(loops *l, val a) {
  const int64_t n = loops_dim(l, a, 1);
  val here = loops_equal(l, loops_iota(l, 1, n), loops_iota(l, 2, n));
  val size = loops_pick(l, here, real(l, 0), loops_size(l, a));
  return loops_reduce(l, TS_OP_REDUCE_MAX, loops_reduce(l, TS_OP_REDUCE_MAX, size, 2), 1);
}

/* After the rotation the pairs' products are 0, and the diagonal is alpha - t |gamma|, beta + t |gamma|. */
static val set_pairs(loops *l, val a, val alpha, val beta) {
  const int64_t n = loops_dim(l, a, 1), h = n / 2;
  val rows = loops_iota(l, 1, n), cols = loops_iota(l, 2, n), both[] = {alpha, beta};
  val distance = loops_unary(l, TS_OP_ABS, loops_minus(l, rows, cols));
  val pair = loops_equal(l, distance, loops_number(l, TS_S32, (double)h));
  val numbers = loops_from_real(l, loops_concatenate(l, 1, both, 2));
  a = loops_pick(l, pair, loops_number(l, l->dtype, 0), a);
  return loops_pick(l, loops_equal(l, rows, cols), numbers, a);
}

static void eigh_round(loops *l, val *state, const void *context) {
  (void)context;
  val a = state[TURNED], top = half(l, a, 1, 0);
  val alpha = loops_real(l, diagonal(l, half(l, top, 2, 0))), gamma = diagonal(l, half(l, top, 2, 1));
  val beta = loops_real(l, diagonal(l, half(l, half(l, a, 1, 1), 2, 1)));
  val none = loops_equal(l, gamma, loops_number(l, l->dtype, 0)), size = loops_size(l, gamma);
  const rotation r = make_rotation(l, alpha, beta, gamma, none), of_columns = turned(l, &r);
  rotation of_rows = r;
  of_rows.turn = loops_conjugate(l, r.turn);
  val moved = loops_product(l, r.tangent, size);
  a = rotate(l, rotate(l, a, 2, &of_columns), 1, &of_rows);
  a = set_pairs(l, a, loops_minus(l, alpha, moved), loops_plus(l, beta, moved));
  state[TURNED] = move_on(l, move_on(l, a, 1), 2);
  state[BASIS] = move_on(l, rotate(l, state[BASIS], 2, &of_columns), 2);
}

static void eigh_sweep(loops *l, val *state, const void *context) {
  (void)context;
  all_rounds(l, eigh_round, state);
  val a = state[TURNED], n = real(l, (double)(loops_dim(l, a, 1) + 1));
  val norm = root(l, loops_reduce(l, TS_OP_REDUCE_SUM, sum_of_squares(l, a, 2), 1));
  val least = loops_quotient(l, loops_product(l, norm, real(l, epsilon_of(l))), n);
  state[AGAIN] = any(l, loops_less(l, least, largest_beside_diagonal(l, a)));
}

/* The lower triangle and its mirror image; of the diagonal the real parts. */
static val mirror(loops *l, val a) {
  const int64_t n = loops_dim(l, a, 1);
  val rows = loops_iota(l, 1, n), cols = loops_iota(l, 2, n), image = loops_adjoint(l, a);
  val straight = loops_from_real(l, loops_real(l, a));
  return loops_pick(l, loops_less(l, cols, rows), a, loops_pick(l, loops_equal(l, rows, cols), straight, image));
}

void loops_eigh(loops *l, val a, val out[2]) {
  const loops_scaled s = loops_scale(l, mirror(l, a));
  const int64_t batch = loops_dim(l, a, 0), n = loops_dim(l, a, 1), even = n + n % 2;
  val state[LOOPS_STATE] = {
      [TURNED] = make_even(l, make_even(l, s.a, 1), 2), [BASIS] = loops_eye(l, batch, even, even)};
  sweep_all(l, eigh_sweep, state);
  val values = loops_real(l, loops_slice(l, loops_turned(l, diagonal(l, state[TURNED])), 2, 0, n));
  val order = order_of(l, values), vectors = loops_slice(l, loops_slice(l, state[BASIS], 1, 0, n), 2, 0, n);
  vectors = loops_take(l, vectors, order, 2);
  values = loops_times(l, loops_take(l, values, order, 2), s.power);
  out[0] = loops_finite_or_nan(l, &s, loops_from_real(l, values));
  out[1] = loops_finite_or_nan(l, &s, loops_product(l, vectors, turn_of(l, vectors)));
}

/* ---- svd: rotations make the columns of W = A V orthogonal. Then R of W = Q R is diagonal up to rounding. */

/* Whether a pair needs no rotation: its columns are orthogonal up to rounding, or one of its columns is no larger than
 * the rounding of the matrix. */
static val is_orthogonal(loops *l, val x, val y, val gamma, int64_t rows) {
  const double epsilon = epsilon_of(l);
  val least = larger(l, loops_binary(l, TS_OP_MIN, x, y), real(l, epsilon));
  val limit = loops_product(l, real(l, 4 * epsilon * sqrt((double)rows)), loops_product(l, larger(l, x, y), least));
  return loops_binary(l, TS_OP_LESS_EQUAL, loops_size(l, gamma), limit);
}

static void svd_round(loops *l, val *state, const void *context) {
  (void)context;
  val w = state[TURNED], p = half(l, w, 2, 0), q = half(l, w, 2, 1);
  val x = sum_of_squares(l, p, 1), y = sum_of_squares(l, q, 1);
  val gamma = loops_reduce(l, TS_OP_REDUCE_SUM, loops_product(l, loops_conjugate(l, p), q), 1);
  val none = is_orthogonal(l, root(l, x), root(l, y), gamma, loops_dim(l, w, 1));
  const rotation r = make_rotation(l, x, y, gamma, none);
  state[TURNED] = move_on(l, rotate(l, w, 2, &r), 2);
  state[BASIS] = move_on(l, rotate(l, state[BASIS], 2, &r), 2);
  val again = any(l, loops_equal(l, none, loops_number(l, TS_U8, 0)));
  state[AGAIN] = loops_either(l, state[AGAIN], again);
}

static void svd_sweep(loops *l, val *state, const void *context) {
  (void)context;
  state[AGAIN] = loops_number(l, TS_U8, 0);
  all_rounds(l, svd_round, state);
}

typedef struct triple {
  val left, values, right; /* columns of both; values as a row of the parts' type */
} triple;

static triple in_order(loops *l, triple t, val keys) {
  val order = order_of(l, keys);
  return (triple){loops_take(l, t.left, order, 2), loops_take(l, t.values, order, 2), loops_take(l, t.right, order, 2)};
}

/* Of a square matrix. */
static triple svd_of_square(loops *l, val a) {
  const int64_t batch = loops_dim(l, a, 0), n = loops_dim(l, a, 1), even = n + n % 2;
  val state[LOOPS_STATE] = {[TURNED] = make_even(l, a, 2), [BASIS] = loops_eye(l, batch, even, even)}, qr[2];
  sweep_all(l, svd_sweep, state);
  val w = loops_slice(l, state[TURNED], 2, 0, n), v = loops_slice(l, loops_slice(l, state[BASIS], 1, 0, n), 2, 0, n);
  val norms = root(l, sum_of_squares(l, w, 1));
  triple t = in_order(l, (triple){w, norms, v}, norms);
  loops_qr_of_scaled(l, t.left, false, qr);
  val numbers = loops_turned(l, diagonal(l, qr[1])); /* whose phases belong to the left vectors */
  t.left = loops_product(l, qr[0], loops_phase(l, numbers));
  t.values = loops_size(l, numbers);
  return in_order(l, t, t.values);
}

/* The matrix has at least as many rows as columns. `full`: the left side is square. */
static triple svd_of_tall(loops *l, val a, bool full) {
  const int64_t m = loops_dim(l, a, 1), n = loops_dim(l, a, 2);
  val qr[2];
  if (m == n) return svd_of_square(l, a);
  loops_qr_of_scaled(l, a, full, qr);
  triple t = svd_of_square(l, full ? loops_slice(l, qr[1], 1, 0, n) : qr[1]);
  val operands[] = {full ? loops_slice(l, qr[0], 2, 0, n) : qr[0], t.left};
  const ts_attrs attrs = {
      .dot = {.lhs_contract = {1, {2}}, .lhs_batch = {1, {0}}, .rhs_contract = {1, {1}}, .rhs_batch = {1, {0}}}};
  t.left = loops_add(l, TS_OP_DOT, operands, 2, &attrs);
  if (!full) return t;
  val parts[] = {t.left, loops_slice(l, qr[0], 2, n, m)};
  t.left = loops_concatenate(l, 2, parts, 2);
  return t;
}

/* The first columns of `x` times as many numbers. */
static val turn_columns(loops *l, val x, val turns) {
  const int64_t cols = loops_dim(l, x, 2), count = loops_dim(l, turns, 2), few = cols < count ? cols : count;
  val first = loops_product(l, loops_slice(l, x, 2, 0, few), loops_slice(l, turns, 2, 0, few));
  if (few == cols) return first;
  val parts[] = {first, loops_slice(l, x, 2, few, cols)};
  return loops_concatenate(l, 2, parts, 2);
}

void loops_svd(loops *l, val a, bool full, val out[3]) {
  const loops_scaled s = loops_scale(l, a);
  const bool wide = loops_dim(l, a, 1) < loops_dim(l, a, 2);
  const triple t = svd_of_tall(l, wide ? loops_adjoint(l, s.a) : s.a, full);
  val left = wide ? t.right : t.left, right = wide ? t.left : t.right, turns = turn_of(l, right);
  out[0] = loops_finite_or_nan(l, &s, turn_columns(l, left, turns));
  out[1] = loops_finite_or_nan(l, &s, loops_times(l, t.values, s.power));
  out[2] = loops_finite_or_nan(l, &s, loops_adjoint(l, loops_product(l, right, turns)));
}
