/* QR factors of one complex matrix by Householder's reflectors. The diagonal of R is that of Nx's reflectors: of the
 * phase opposite to that of the element which was reflected. */
#include "kernel/linalg/factor_complex.h"

static void put_r(const factor *f, const factor_rows *a, factor_numbers diagonal, int64_t steps, double by) {
  const int64_t m = a->length, n = a->count, rows = f->spec->full ? m : ts_linalg_min(m, n);
  const factor_view out = {f->results[1], n, 1};
  for (int64_t i = 0; i < rows; i++)
    for (int64_t k = 0; k < n; k++) {
      const factor_number x =
          k == i && i < steps ? factor_number_at(diagonal, i) : factor_number_at(factor_row(a, k), i);
      factor_view_put(&out, i, k, k < i ? (factor_number){0, 0} : (factor_number){x.re * by, x.im * by});
    }
}

ts_status factor_complex_qr(const factor *f) {
  const int64_t m = f->spec->rows, n = f->spec->cols, least = ts_linalg_min(m, n), steps = m == n ? least - 1 : least;
  double *tau = (double *)(void *)f->workspace;
  const factor_numbers diagonal = {tau + least, tau + 2 * least};
  const factor_rows a = {tau + 3 * least, n, m}, q = {factor_rows_end(&a), f->spec->full ? m : least, m};
  const factor_view in = {(double *)(uintptr_t)f->matrix, 1, n}, out = {f->results[0], 1, q.count};
  const int power = factor_range_power(f, f->most);
  factor_load(&in, &a, n, m);
  factor_scale_by_power(f, (char *)a.data, 2 * n * m, power);
  TS_TRY(factor_complex_columns(f, &a, steps, diagonal, tau));
  TS_TRY(factor_complex_product(f, &a, 0, steps, tau, &q));
  factor_store(&q, &out, q.count, m);
  put_r(f, &a, diagonal, steps, ldexp(1, -power));
  return TS_SUCCESS;
}
