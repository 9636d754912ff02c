/* Triangular factors and systems for one type of numbers (kernel/ref/ref_linalg_numbers.h). Every sum is a chain from
 * +0 in the order of substitution. */

static void NAME(store)(const ts_ref_call *call, int result, int64_t first, int64_t count, const NUMBER *from) {
  for (int64_t i = 0; i < count; i++) NAME(put)(call, result, first + i, from[i]);
}

/* The sum over k < count of a[k] * b[k * step]. */
static NUMBER NAME(chain)(const NUMBER *a, const NUMBER *b, int64_t step, int64_t count) {
  NUMBER sum = 0;
  for (int64_t k = 0; k < count; k++) sum = MULTIPLY_ADD(a[k], b[k * step], sum);
  return sum;
}

/* ---- cholesky */

/* Column j: L[i,j] = (A[i,j] - sum over k < j of L[i,k] * conj(L[j,k])) / L[j,j]. False when the number under the root
 * is below 0 or NaN, or 0 with another number below it. */
static bool NAME(factor_column)(NUMBER *a, int64_t n, int64_t j) {
  for (int64_t i = j; i < n; i++) {
    NUMBER sum = 0;
    for (int64_t k = 0; k < j; k++) sum = MULTIPLY_ADD(a[i * n + k], CONJUGATE(a[j * n + k]), sum);
    a[i * n + j] -= sum;
  }
  const REAL pivot = REAL_PART(a[j * n + j]);
  if (!(pivot >= 0)) return false;
  a[j * n + j] = ROOT(a[j * n + j]);
  for (int64_t i = j + 1; i < n; i++) {
    if (pivot == 0 && a[i * n + j] != 0) return false;
    if (pivot > 0) a[i * n + j] /= REAL_PART(a[j * n + j]);
  }
  return true;
}

static void NAME(cholesky)(const ts_ref_call *call, int64_t which, void *room) {
  const int64_t n = ref_cols(call->operands[0]), first = which * n * n;
  NUMBER *a = room;
  bool definite = true;
  NAME(load)(call->operands[0], first, n * n, a);
  for (int64_t j = 0; definite && !ts_cancelled(call->cancel) && j < n; j++) definite = NAME(factor_column)(a, n, j);
  for (int64_t i = 0; i < n; i++)
    for (int64_t k = 0; k < n; k++)
      NAME(put)(call, 0, first + i * n + k, k > i ? 0 : definite ? a[i * n + k] : MAKE((double)NAN, (double)NAN));
}

/* ---- triangular_solve: op(A) X = B, or from the right side the transpose of that */

/* Row i of op(A) X = B for one column of X. `a` is op(A) and `x` the column. The known elements of `x` stand in the
 * order of their computation: from the first one on, or from the last one. */
static NUMBER NAME(rest)(const NUMBER *row, const NUMBER *x, int64_t n, int64_t step, bool forward) {
  NUMBER sum = 0;
  for (int64_t before = 0; before < step; before++) {
    const int64_t k = forward ? before : n - 1 - before;
    sum = MULTIPLY_ADD(row[k], x[k], sum);
  }
  return sum;
}

static void NAME(triangular_solve)(const ts_ref_call *call, int64_t which, void *room) {
  const ts_attrs *attrs = call->op->attrs;
  const ts_buffer *b = call->operands[1];
  const bool left = attrs->triangular.left, across = attrs->triangular.transpose == left;
  const bool forward = (attrs->triangular.lower != attrs->triangular.transpose) == left;
  const int64_t n = left ? ref_rows(b) : ref_cols(b), cols = left ? ref_cols(b) : ref_rows(b);
  NUMBER *a = room, *x = a + n * n;
  for (int64_t i = 0; i < n * n; i++)
    a[i] = NAME(element)(call->operands[0], which * n * n + (across ? i % n * n + i / n : i));
  for (int64_t c = 0; c < cols && !ts_cancelled(call->cancel); c++)
    for (int64_t step = 0; step < n; step++) {
      const int64_t i = forward ? step : n - 1 - step, at = which * n * cols + (left ? i * cols + c : c * n + i);
      x[i] = NAME(element)(b, at) - NAME(rest)(a + i * n, x, n, step, forward);
      if (!attrs->triangular.unit) x[i] = DIVIDE(x[i], a[i * n + i]);
      NAME(put)(call, 0, at, x[i]);
    }
}

/* ---- lu, solve, determinant: rows of `cols` numbers; the first n are the matrix */

static void NAME(exchange)(NUMBER *a, NUMBER *b, int64_t count) {
  for (int64_t i = 0; i < count; i++) {
    const NUMBER kept = a[i];
    a[i] = b[i];
    b[i] = kept;
  }
}

static int64_t NAME(find_pivot)(const NUMBER *a, int64_t n, int64_t cols, int64_t j) {
  int64_t best = j;
  for (int64_t i = j + 1; i < n; i++)
    if (SIZE(a[i * cols + j]) > SIZE(a[best * cols + j])) best = i;
  return best;
}

/* The factors replace the first n columns; whole rows are exchanged. True when an odd number of rows was exchanged. */
static bool NAME(factor_lu)(const ts_ref_call *call, NUMBER *a, int64_t n, int64_t cols) {
  bool odd = false;
  for (int64_t j = 0; !ts_cancelled(call->cancel) && j < n; j++) {
    for (int64_t i = 0; i < n; i++) a[i * cols + j] -= NAME(chain)(a + i * cols, a + j, cols, i < j ? i : j);
    const int64_t pivot = NAME(find_pivot)(a, n, cols, j);
    odd ^= pivot != j;
    if (pivot != j) NAME(exchange)(a + j * cols, a + pivot * cols, cols);
    for (int64_t i = j + 1; i < n && a[j * cols + j] != 0; i++)
      a[i * cols + j] = DIVIDE(a[i * cols + j], a[j * cols + j]);
  }
  return odd;
}

/* Column j of the right side: L y = b, then U x = y from the last row on. */
static void NAME(substitute)(NUMBER *a, int64_t n, int64_t cols, int64_t j) {
  for (int64_t i = 0; i < n; i++) a[i * cols + j] -= NAME(chain)(a + i * cols, a + j, cols, i);
  for (int64_t i = n - 1; i >= 0; i--) {
    NUMBER sum = 0;
    for (int64_t k = n - 1; k > i; k--) sum = MULTIPLY_ADD(a[i * cols + k], a[k * cols + j], sum);
    a[i * cols + j] = DIVIDE(a[i * cols + j] - sum, a[i * cols + i]);
  }
}

static void NAME(solve)(const ts_ref_call *call, int64_t which, void *room) {
  const int64_t n = ref_cols(call->operands[0]), right = ref_cols(call->operands[1]), cols = n + right;
  NUMBER *a = room;
  for (int64_t i = 0; i < n; i++) {
    NAME(load)(call->operands[0], (which * n + i) * n, n, a + i * cols);
    NAME(load)(call->operands[1], (which * n + i) * right, right, a + i * cols + n);
  }
  (void)NAME(factor_lu)(call, a, n, cols);
  for (int64_t j = n; !ts_cancelled(call->cancel) && j < cols; j++) NAME(substitute)(a, n, cols, j);
  for (int64_t i = 0; i < n; i++) NAME(store)(call, 0, (which * n + i) * right, right, a + i * cols + n);
}

/* A column behind the matrix has the number that each row had at first. */
static void NAME(lu)(const ts_ref_call *call, int64_t which, void *room) {
  const int64_t n = ref_cols(call->operands[0]), cols = n + 1;
  NUMBER *a = room;
  for (int64_t i = 0; i < n; i++) {
    NAME(load)(call->operands[0], (which * n + i) * n, n, a + i * cols);
    a[i * cols + n] = MAKE((double)i, 0);
  }
  (void)NAME(factor_lu)(call, a, n, cols);
  for (int64_t i = 0; i < n; i++)
    for (int64_t k = 0; k < n; k++) {
      const int64_t from = (int64_t)REAL_PART(a[i * cols + n]), at = (which * n + i) * n + k;
      NAME(put)(call, 0, (which * n + k) * n + i, k == from);
      NAME(put)(call, 1, at, k < i ? a[i * cols + k] : k == i);
      NAME(put)(call, 2, at, k < i ? 0 : a[i * cols + k]);
    }
}

/* The number without the power of two of its larger part. The power is added to `power`: partial products may be beyond
 * the range. */
static NUMBER NAME(part)(NUMBER x, int64_t *power) {
  const REAL re = REAL_PART(x), im = (REAL)IMAGINARY_PART(x);
  const REAL most = SIZE(re) > SIZE(im) ? SIZE(re) : SIZE(im);
  int exponent = 0;
  if (!isfinite(re) || !isfinite(im)) return x;
  (void)frexp((double)most, &exponent);
  *power += exponent;
  return TIMES_POWER(x, -exponent);
}

static void NAME(determinant)(const ts_ref_call *call, int64_t which, void *room) {
  const int64_t n = ref_cols(call->operands[0]);
  NUMBER *a = room;
  int64_t power = 0;
  NAME(load)(call->operands[0], which * n * n, n * n, a);
  NUMBER product = NAME(factor_lu)(call, a, n, n) ? -1 : 1;
  for (int64_t i = 0; i < n; i++) {
    const NUMBER x = NAME(part)(a[i * n + i], &power);
    product = NAME(part)(product * x, &power);
  }
  NAME(put)(call, 0, which, TIMES_POWER(product, (int)(power > 9999 ? 9999 : power < -9999 ? -9999 : power)));
}

static ts_status NAME(systems)(const ts_ref_call *call) {
  static const ts_ref_method methods[] = {{TS_OP_CHOLESKY, NAME(cholesky)},
                                          {TS_OP_TRIANGULAR_SOLVE, NAME(triangular_solve)},
                                          {TS_OP_SOLVE, NAME(solve)},
                                          {TS_OP_LU, NAME(lu)},
                                          {TS_OP_DETERMINANT, NAME(determinant)},
                                          {TS_OP_COUNT, NULL}};
  const ts_buffer *a = call->operands[0], *b = call->operands[call->op->operand_count - 1];
  const int64_t n = a->shape.dims[a->shape.rank - 1], right = call->op->code == TS_OP_SOLVE ? ref_cols(b) : 1;
  return ts_ref_each_matrix(call, methods, n * (n + right), sizeof(NUMBER));
}
