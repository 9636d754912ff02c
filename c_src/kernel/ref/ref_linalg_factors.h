/* QR by Householder's reflections, eigenvalues and singular values by Jacobi's rotations, for one type of numbers
 * (kernel/ref/ref_linalg_numbers.h). Matrices are rows of numbers. */

/* Rounds to the type of the result. Zeros are +0: their signs would be those of rounding. */
static void NAME(put_factor)(const ts_ref_call *call, int result, int64_t i, NUMBER x) {
  NAME(put)(call, result, i, x);
  NAME(put)(call, result, i, NAME(element)(call->results[result], i) + MAKE(0, 0));
}

static REAL NAME(norm)(const NUMBER *x, int64_t step, int64_t count) {
  REAL sum = 0;
  for (int64_t i = 0; i < count; i++) sum += SIZE(x[i * step]) * SIZE(x[i * step]);
  return ROOT(sum);
}

/* The sum of conj(x[i]) * y[i]. */
static NUMBER NAME(inner)(const NUMBER *x, const NUMBER *y, int64_t step, int64_t count) {
  NUMBER sum = 0;
  for (int64_t i = 0; i < count; i++) sum += CONJUGATE(x[i * step]) * y[i * step];
  return sum;
}

/* x / |x|, of 0 it is 1. */
static NUMBER NAME(phase)(NUMBER x) { return x == 0 ? 1 : x / SIZE(x); }

static void NAME(set_identity)(NUMBER *q, int64_t rows, int64_t cols) {
  for (int64_t i = 0; i < rows * cols; i++) q[i] = i / cols == i % cols;
}

static bool NAME(all_finite)(const NUMBER *a, int64_t count) {
  bool finite = true;
  for (int64_t i = 0; i < count; i++) finite &= isfinite(REAL_PART(a[i])) && isfinite(IMAGINARY_PART(a[i]));
  return finite;
}

/* All results of matrix `which` are NaN. */
static void NAME(put_nan)(const ts_ref_call *call, int64_t which) {
  const int64_t batch =
      ts_shape_elements(&call->operands[0]->shape) / (ref_rows(call->operands[0]) * ref_cols(call->operands[0]));
  for (int r = 0; r < (int)call->op->result_count; r++) {
    const int64_t count = ts_shape_elements(&call->results[r]->shape) / batch;
    for (int64_t i = 0; i < count; i++) NAME(put_factor)(call, r, which * count + i, MAKE((double)NAN, (double)NAN));
  }
}

/* ---- qr */

/* Whether a real column counts as zero below its first number. Then the reflection is followed by a change of sign of
 * the row, as both together are near to the identity. */
static bool NAME(is_kept)(NUMBER first, REAL below) { return IS_REAL && below <= 1e-5L * SIZE(first); }

/* The first number of the reflected column, for a column with the first number `first` and the norm `below` of the
 * others: real: a positive number, complex: a number of the opposite phase. */
static NUMBER NAME(reflected)(NUMBER first, REAL below) {
  const REAL norm = ROOT(SIZE(first) * SIZE(first) + below * below);
  return !IS_REAL || NAME(is_kept)(first, below) ? -NAME(phase)(first) * norm : norm;
}

/* The vector v of the reflection I - 2 v v^H / (v^H v) of column j of `a`, from row j on; false where there is none.
 * Where the difference of two numbers is less exact than that, it is -below^2 over their sum. */
static bool NAME(make_reflection)(const NUMBER *a, int64_t rows, int64_t cols, int64_t j, NUMBER *v) {
  const NUMBER *column = a + j * cols + j;
  const REAL below = NAME(norm)(column + cols, cols, rows - j - 1);
  const NUMBER becomes = NAME(reflected)(column[0], below);
  if (becomes == 0 || (IS_REAL && below == 0)) return false;
  for (int64_t i = 0; i < rows - j; i++) v[i] = column[i * cols];
  const bool alike = IS_REAL && REAL_PART(v[0]) > 0 && REAL_PART(becomes) > 0;
  v[0] = alike ? -below * below / (v[0] + becomes) : v[0] - becomes;
  return true;
}

static void NAME(negate)(NUMBER *row, int64_t count) {
  for (int64_t k = 0; k < count; k++) row[k] = -row[k];
}

/* Rows `from` on of the matrix, from the left. */
static void NAME(reflect)(const NUMBER *v, NUMBER *a, int64_t rows, int64_t cols, int64_t from) {
  const REAL norm = NAME(norm)(v, 1, rows - from);
  for (int64_t k = 0; k < cols; k++) {
    NUMBER sum = 0;
    for (int64_t i = from; i < rows; i++) sum += CONJUGATE(v[i - from]) / norm * a[i * cols + k];
    for (int64_t i = from; i < rows; i++) a[i * cols + k] -= 2 * (v[i - from] / norm) * sum;
  }
}

/* A and Q^H change alike: A becomes R, and the identity Q^H. Of a square complex matrix the last column stays. */
static void NAME(qr)(const ts_ref_call *call, int64_t which, void *room) {
  const int64_t m = ref_rows(call->operands[0]), n = ref_cols(call->operands[0]), least = m < n ? m : n;
  const int64_t kept = ref_rows(call->results[1]), steps = !IS_REAL && m == n ? n - 1 : least;
  NUMBER *a = room, *q = a + m * n, *v = q + m * m;
  NAME(load)(call->operands[0], which * m * n, m * n, a);
  if (!NAME(all_finite)(a, m * n)) return NAME(put_nan)(call, which);
  NAME(set_identity)(q, m, m);
  for (int64_t j = 0; j < steps && !ts_cancelled(call->cancel); j++) {
    const bool keep = NAME(is_kept)(a[j * n + j], NAME(norm)(a + j * n + n + j, n, m - j - 1));
    if (!NAME(make_reflection)(a, m, n, j, v)) continue;
    NAME(reflect)(v, a, m, n, j);
    NAME(reflect)(v, q, m, m, j);
    if (keep) NAME(negate)(a + j * n, n);
    if (keep) NAME(negate)(q + j * m, m);
  }
  for (int64_t i = 0; i < m; i++)
    for (int64_t k = 0; k < kept; k++) NAME(put_factor)(call, 0, (which * m + i) * kept + k, CONJUGATE(q[k * m + i]));
  for (int64_t i = 0; i < kept; i++)
    for (int64_t k = 0; k < n; k++) NAME(put_factor)(call, 1, (which * kept + i) * n + k, k < i ? 0 : a[i * n + k]);
}

/* ---- Jacobi's rotations */

/* The rotation of two directions p and q whose matrix of products is [alpha, gamma; conj(gamma), beta]; afterwards the
 * product of both is 0: p becomes c p - s conj(phase) q, and q becomes s p + c conj(phase) q. */
typedef struct NAME(rotation) {
  REAL c, s;
  NUMBER turn; /* conj(phase) */
} NAME(rotation);

static NAME(rotation) NAME(make_rotation)(REAL alpha, REAL beta, NUMBER gamma) {
  const REAL zeta = (beta - alpha) / (2 * SIZE(gamma));
  const REAL t = (zeta < 0 ? -1 : 1) / (SIZE(zeta) + ROOT(1 + zeta * zeta)), c = 1 / ROOT(1 + t * t);
  return (NAME(rotation)){c, c * t, CONJUGATE(NAME(phase)(gamma))};
}

static void NAME(rotate)(const NAME(rotation) * r, NUMBER *p, NUMBER *q, int64_t step, int64_t count) {
  for (int64_t i = 0; i < count; i++) {
    const NUMBER x = p[i * step], y = r->turn * q[i * step];
    p[i * step] = r->c * x - r->s * y;
    q[i * step] = r->s * x + r->c * y;
  }
}

/* The numbers 0 .. count - 1 in descending order of the sizes; equal ones stay in order. */
static void NAME(sort)(const REAL *values, int64_t count, int64_t *order) {
  for (int64_t i = 0; i < count; i++) {
    int64_t at = i;
    for (; at > 0 && SIZE(values[order[at - 1]]) < SIZE(values[i]); at--) order[at] = order[at - 1];
    order[at] = i;
  }
}

/* The conjugate of the phase of the first number of largest size. */
static NUMBER NAME(turn_of)(const NUMBER *x, int64_t step, int64_t count) {
  int64_t best = 0;
  for (int64_t i = 1; i < count; i++)
    if (SIZE(x[i * step]) > SIZE(x[best * step])) best = i;
  return count > 0 ? CONJUGATE(NAME(phase)(x[best * step])) : 1;
}

enum { NAME(MOST_SWEEPS) = 100 }; /* ten are enough for any matrix */

/* ---- eigh: A becomes diagonal, and the identity the eigenvectors */

/* The lower triangle and its mirror image; of the diagonal the real parts. */
static void NAME(mirror)(NUMBER *a, int64_t n) {
  for (int64_t i = 0; i < n; i++) {
    a[i * n + i] = REAL_PART(a[i * n + i]);
    for (int64_t k = 0; k < i; k++) a[k * n + i] = CONJUGATE(a[i * n + k]);
  }
}

static bool NAME(sweep_eigh)(NUMBER *a, NUMBER *v, int64_t n, REAL least) {
  bool done = true;
  for (int64_t p = 0; p < n; p++)
    for (int64_t q = p + 1; q < n; q++) {
      if (SIZE(a[p * n + q]) <= least) continue;
      done = false;
      const NAME(rotation) r = NAME(make_rotation)(REAL_PART(a[p * n + p]), REAL_PART(a[q * n + q]), a[p * n + q]);
      NAME(rotation) of_rows = r;
      of_rows.turn = CONJUGATE(r.turn);
      NAME(rotate)(&r, a + p, a + q, n, n);
      NAME(rotate)(&of_rows, a + p * n, a + q * n, 1, n);
      NAME(rotate)(&r, v + p, v + q, n, n);
    }
  return done;
}

static void NAME(eigh)(const ts_ref_call *call, int64_t which, void *room) {
  const int64_t n = ref_cols(call->operands[0]);
  NUMBER *a = room, *v = a + n * n;
  REAL *values = (REAL *)(void *)(v + n * n);
  int64_t *order = (int64_t *)(void *)(values + n);
  NAME(load)(call->operands[0], which * n * n, n * n, a);
  NAME(mirror)(a, n);
  if (!NAME(all_finite)(a, n * n)) return NAME(put_nan)(call, which);
  NAME(set_identity)(v, n, n);
  const REAL least = NAME(norm)(a, 1, n * n) * REF_EPSILON / (REAL)(n + 1);
  for (int s = 0; s < NAME(MOST_SWEEPS) && !ts_cancelled(call->cancel); s++)
    if (NAME(sweep_eigh)(a, v, n, least)) break;
  for (int64_t i = 0; i < n; i++) values[i] = REAL_PART(a[i * n + i]);
  NAME(sort)(values, n, order);
  for (int64_t c = 0; c < n; c++) {
    const NUMBER *vector = v + order[c], turn = NAME(turn_of)(vector, n, n);
    NAME(put_factor)(call, 0, which * n + c, values[order[c]]);
    for (int64_t i = 0; i < n; i++) NAME(put_factor)(call, 1, (which * n + i) * n + c, turn * vector[i * n]);
  }
}

/* ---- svd: columns W of A V become orthogonal, so that A = U S V^H with W = U S */

/* `w` has m rows, `v` n, and both n columns. Columns are orthogonal up to rounding relative to their own norms. */
static bool NAME(sweep_svd)(NUMBER *w, NUMBER *v, int64_t m, int64_t n) {
  bool done = true;
  for (int64_t p = 0; p < n; p++)
    for (int64_t q = p + 1; q < n; q++) {
      const REAL x = NAME(norm)(w + p, n, m), y = NAME(norm)(w + q, n, m);
      const NUMBER gamma = NAME(inner)(w + p, w + q, n, m);
      if (SIZE(gamma) <= 4 * REF_EPSILON * (REAL)m * x * y) continue;
      done = false;
      const NAME(rotation) r = NAME(make_rotation)(x * x, y * y, gamma);
      NAME(rotate)(&r, w + p, w + q, n, m);
      NAME(rotate)(&r, v + p, v + q, n, n);
    }
  return done;
}

/* Makes column c of `u` orthogonal to the columns before it: subtracts its projections on them, twice (Gram and
 * Schmidt). Returns its norm, or 0 when nothing but rounding is left of it. */
static REAL NAME(make_orthogonal)(NUMBER *u, int64_t rows, int64_t cols, int64_t c) {
  for (int again = 0; again < 2; again++)
    for (int64_t k = 0; k < c; k++) {
      const NUMBER part = NAME(inner)(u + k, u + c, cols, rows);
      for (int64_t i = 0; i < rows; i++) u[i * cols + c] -= part * u[i * cols + k];
    }
  return NAME(norm)(u + c, cols, rows);
}

/* Columns `first` to cols - 1 of `u` become unit vectors that are orthogonal to the earlier columns. Unless the earlier
 * columns span the whole space, some axis has a part of at least 1 / sqrt(rows) outside of their span.
 */
static void NAME(complete)(NUMBER *u, int64_t rows, int64_t cols, int64_t first) {
  int64_t axis = 0;
  for (int64_t c = first; c < cols; c++) {
    REAL norm = 0;
    for (int64_t tries = 0; tries < rows && norm < 0.5L / ROOT((REAL)rows); tries++, axis++) {
      for (int64_t i = 0; i < rows; i++) u[i * cols + c] = i == axis % rows;
      norm = NAME(make_orthogonal)(u, rows, cols, c);
    }
    for (int64_t i = 0; i < rows; i++) u[i * cols + c] /= norm;
  }
}

/* A matrix with at least as many rows as columns, or the adjoint of another one; both factors have all columns. */
typedef struct NAME(jacobi) {
  int64_t m, n; /* m >= n */
  bool adjoint;
  NUMBER *w, *v, *u, *right; /* m x n, n x n, m x m, n x n; `right` has the columns of v in order */
  REAL *values;
  int64_t *order;
} NAME(jacobi);

static NAME(jacobi) NAME(lay_out_svd)(const ts_ref_call *call, void *room) {
  const int64_t rows = ref_rows(call->operands[0]), cols = ref_cols(call->operands[0]);
  NAME(jacobi) s = {.m = rows < cols ? cols : rows, .n = rows < cols ? rows : cols, .adjoint = rows < cols, .w = room};
  s.v = s.w + s.m * s.n;
  s.u = s.v + s.n * s.n;
  s.right = s.u + s.m * s.m;
  s.values = (REAL *)(void *)(s.right + s.n * s.n);
  s.order = (int64_t *)(void *)(s.values + s.n);
  return s;
}

static void NAME(load_svd)(const ts_ref_call *call, int64_t which, const NAME(jacobi) * s) {
  const int64_t first = which * s->m * s->n;
  for (int64_t i = 0; i < s->m; i++)
    for (int64_t k = 0; k < s->n; k++)
      s->w[i * s->n + k] = s->adjoint ? CONJUGATE(NAME(element)(call->operands[0], first + k * s->m + i))
                                      : NAME(element)(call->operands[0], first + i * s->n + k);
}

/* Columns of W that are 0 have no direction: others that are orthogonal stand in for them. */
static void NAME(order_svd)(const NAME(jacobi) * s) {
  int64_t rank = 0;
  for (int64_t c = 0; c < s->n; c++) s->values[c] = NAME(norm)(s->w + c, s->n, s->m);
  NAME(sort)(s->values, s->n, s->order);
  for (int64_t c = 0; c < s->n; c++) {
    const int64_t from = s->order[c];
    for (int64_t i = 0; i < s->n; i++) s->right[i * s->n + c] = s->v[i * s->n + from];
    if (!(s->values[from] > 0)) continue;
    for (int64_t i = 0; i < s->m; i++) s->u[i * s->m + c] = s->w[i * s->n + from] / s->values[from];
    rank++;
  }
  NAME(complete)(s->u, s->m, s->m, rank);
}

static void NAME(put_svd)(const ts_ref_call *call, int64_t which, const NAME(jacobi) * s) {
  const int64_t lefts = ref_cols(call->results[0]), rights = ref_rows(call->results[2]);
  const int64_t rows = s->adjoint ? s->n : s->m, cols = s->adjoint ? s->m : s->n;
  const NUMBER *left = s->adjoint ? s->right : s->u, *right = s->adjoint ? s->u : s->right;
  for (int64_t c = 0; c < s->n; c++) NAME(put_factor)(call, 1, which * s->n + c, s->values[s->order[c]]);
  for (int64_t c = 0; c < lefts || c < rights; c++) {
    const NUMBER turn = c < rights ? NAME(turn_of)(right + c, cols, cols) : 1;
    for (int64_t i = 0; i < cols && c < rights; i++)
      NAME(put_factor)(call, 2, (which * rights + c) * cols + i, CONJUGATE(turn * right[i * cols + c]));
    for (int64_t i = 0; i < rows && c < lefts; i++)
      NAME(put_factor)(call, 0, (which * rows + i) * lefts + c, turn * left[i * rows + c]);
  }
}

static void NAME(svd)(const ts_ref_call *call, int64_t which, void *room) {
  const NAME(jacobi) s = NAME(lay_out_svd)(call, room);
  NAME(load_svd)(call, which, &s);
  if (!NAME(all_finite)(s.w, s.m * s.n)) return NAME(put_nan)(call, which);
  NAME(set_identity)(s.v, s.n, s.n);
  for (int i = 0; i < NAME(MOST_SWEEPS) && !ts_cancelled(call->cancel); i++)
    if (NAME(sweep_svd)(s.w, s.v, s.m, s.n)) break;
  NAME(order_svd)(&s);
  NAME(put_svd)(call, which, &s);
}

static ts_status NAME(factors)(const ts_ref_call *call) {
  static const ts_ref_method methods[] = {
      {TS_OP_QR, NAME(qr)}, {TS_OP_EIGH, NAME(eigh)}, {TS_OP_SVD, NAME(svd)}, {TS_OP_COUNT, NULL}};
  const int64_t m = ref_rows(call->operands[0]), n = ref_cols(call->operands[0]), most = m > n ? m : n;
  return ts_ref_each_matrix(call, methods, 4 * most * most + 2 * most, sizeof(NUMBER));
}
