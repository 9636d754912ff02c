/* QR factors by Householder's reflectors. */
#include "kernel/factor_internal.h"

/* Which rows of R to negate, so that its diagonal is not negative. Where the last reflector has one element and is
 * therefore none, an even number of rows is negated. */
static void find_turned(const factor *f, const double *diagonal, double *sign) {
  const int64_t m = f->spec->rows, n = f->spec->cols, steps = ts_linalg_min(m, n);
  bool odd = false;
  for (int64_t j = 0; j < steps; j++) {
    const bool last = m <= n && j == steps - 1, turned = last ? odd : diagonal[j] < 0;
    odd ^= turned;
    sign[j] = turned ? -1 : 1;
  }
}

static void put_r(const factor *f, const factor_lines *a, const double *diagonal, const double *sign) {
  const int64_t m = a->length, n = a->count, steps = ts_linalg_min(m, n), rows = f->spec->full ? m : steps;
  for (int64_t i = 0; i < rows; i++)
    for (int64_t k = 0; k < n; k++) {
      double x = k < i || i >= steps ? 0 : k == i ? diagonal[i] : factor_get(f, factor_line(f, a, k), i);
      factor_set(f, f->results[1], i * n + k, x != 0 ? x * sign[i] : 0);
    }
}

ts_status factor_qr(const factor *f) {
  const int64_t m = f->spec->rows, n = f->spec->cols, steps = ts_linalg_min(m, n);
  double *diagonal = (double *)(void *)f->workspace, *tau = diagonal + steps, *sign = tau + steps;
  const factor_lines a = {(char *)(sign + steps), n, m};
  const factor_lines q = {a.data + n * m * f->size, f->spec->full ? m : steps, m};
  const ts_linalg_view from = {(char *)(uintptr_t)f->matrix, 1, n}, to = {a.data, m, 1};
  ts_linalg_copy(&from, &to, n, m, f->size);
  TS_TRY(factor_columns(f, &a, steps, diagonal, tau));
  find_turned(f, diagonal, sign);
  TS_TRY(factor_product(f, &a, 0, steps, tau, &q));
  for (int64_t c = 0; c < steps; c++)
    for (int64_t i = 0; sign[c] < 0 && i < m; i++)
      factor_set(f, factor_line(f, &q, c), i, -factor_get(f, factor_line(f, &q, c), i));
  const ts_linalg_view columns = {q.data, 1, m}, out = {f->results[0], q.count, 1};
  ts_linalg_copy(&columns, &out, m, q.count, f->size);
  put_r(f, &a, diagonal, sign);
  return TS_SUCCESS;
}
