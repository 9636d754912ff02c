/* Eigenvalues of Hermitian matrices: a tridiagonal matrix by reflectors, made real by a phase for each column of their
 * product, then the steps of factor_eigh.c. */
#include "kernel/linalg/factor_complex.h"

typedef struct hermitian {
  const factor *f;
  int64_t n;
  factor_tridiagonal t;
  double *tau, *numbers; /* numbers: a pair for each line */
  factor_numbers phases, w;
  factor_rows a, z; /* the columns of the matrix; the eigenvectors */
} hermitian;

/* The lower triangle and its mirror image, times a power of two that makes its largest element about 1. */
static int load(const hermitian *s) {
  const factor_view in = {(double *)(uintptr_t)s->f->matrix, s->n, 1};
  double most = 0;
  int scale;
  for (int64_t i = 0; i < s->n; i++) most = fmax(most, s->f->v->largest(in.data + 2 * i * s->n, 2 * (i + 1)));
  (void)frexp(most, &scale);
  for (int64_t i = 0; i < s->n; i++)
    for (int64_t k = 0; k <= i; k++) {
      const factor_number x = factor_view_at(&in, i, k);
      const factor_number z = {ldexp(x.re, -scale), k == i ? 0 : ldexp(x.im, -scale)};
      factor_put_number(factor_row(&s->a, k), i, z);
      factor_put_number(factor_row(&s->a, i), k, factor_conjugate(z));
    }
  return scale;
}

/* Pairs -conj(x). */
static void take_opposite(factor_numbers x, int64_t count, double *out) {
  for (int64_t i = 0; i < count; i++) {
    out[2 * i] = -x.re[i];
    out[2 * i + 1] = x.im[i];
  }
}

/* A -= v w^H + w v^H with w = tau A v - (tau^2 / 2) (v^H A v) v, for the rows and columns from `at` on. */
static void update(const hermitian *s, int64_t at, factor_numbers v, double tau) {
  const factor *f = s->f;
  const int64_t count = s->n - at;
  const factor_reflection by_v = {v, count, -tau}, by_w = {s->w, count, 0};
  factor_complex_products(f, &by_v, &s->a, at, s->numbers);
  for (int64_t i = 0; i < count; i++)
    factor_put_number(s->w, i, (factor_number){s->numbers[2 * i], -s->numbers[2 * i + 1]});
  const double half = -tau / 2 * factor_inner(f, v, s->w, count).re;
  factor_add_scaled(f, s->w, (factor_number){half, 0}, v, count);
  take_opposite(s->w, count, s->numbers);
  factor_complex_add(f, &by_v, s->numbers, &s->a, at);
  take_opposite(v, count, s->numbers);
  factor_complex_add(f, &by_w, s->numbers, &s->a, at);
}

/* Phase j + 1 is phase j times that of the element beside the diagonal. */
static void reduce_column(const hermitian *s, int64_t j) {
  const factor_numbers below = factor_from(factor_row(&s->a, j), j + 1);
  const factor_number x = factor_complex_reflector(s->f, below, s->n - j - 1, &s->tau[j]);
  s->t.e[j] = factor_size(x);
  factor_put_number(s->phases, j + 1, factor_times(factor_number_at(s->phases, j), factor_phase(x)));
  if (s->tau[j] != 0) update(s, j + 1, below, s->tau[j]);
}

static ts_status make_tridiagonal(const hermitian *s) {
  factor_put_number(s->phases, 0, (factor_number){1, 0});
  for (int64_t j = 0; j < s->n; j++) {
    TS_TRY(ts_check_cancelled(s->f->cancel, "eigh"));
    s->t.d[j] = factor_row(&s->a, j).re[j];
    s->t.e[j] = 0;
    if (j + 1 < s->n) reduce_column(s, j);
  }
  TS_TRY(factor_complex_product(s->f, &s->a, 1, s->n - 1, s->tau, &s->z));
  for (int64_t c = 0; c < s->n; c++) factor_scale(factor_row(&s->z, c), factor_number_at(s->phases, c), s->n);
  return TS_SUCCESS;
}

/* The element of largest size of each vector becomes real and positive. */
static void put(const hermitian *s, const int64_t *order, int scale) {
  const factor_view values = {s->f->results[0], 1, 1}, vectors = {s->f->results[1], 1, s->n};
  for (int64_t c = 0; c < s->n; c++) {
    const factor_numbers line = factor_row(&s->z, order[c]);
    const factor_number phase = factor_conjugate(factor_largest_phase(line, s->n));
    factor_view_put(&values, c, 0, (factor_number){ldexp(s->t.d[order[c]], scale), 0});
    for (int64_t i = 0; i < s->n; i++) factor_view_put(&vectors, c, i, factor_times(factor_number_at(line, i), phase));
  }
}

ts_status factor_complex_eigh(const factor *f, bool *out_converged) {
  const int64_t n = f->spec->rows;
  double *at = (double *)(void *)f->workspace;
  hermitian s = {.f = f, .n = n, .t = {.f = f, .n = n, .d = at, .e = at + n}, .tau = at + 2 * n};
  int64_t *order = (int64_t *)(void *)(at + 3 * n);
  s.phases = (factor_numbers){at + 4 * n, at + 5 * n};
  s.w = (factor_numbers){at + 6 * n, at + 7 * n};
  s.numbers = at + 8 * n;
  s.a = (factor_rows){at + 10 * n, n, n};
  s.z = (factor_rows){factor_rows_end(&s.a), n, n};
  s.t.z = (factor_lines){(char *)s.z.data, n, 2 * n};
  s.t.parts = (char *)s.a.data;
  s.t.room = (char *)factor_rows_end(&s.z);
  const int scale = load(&s);
  TS_TRY(make_tridiagonal(&s));
  TS_TRY(factor_diagonalize(&s.t, out_converged));
  factor_sort_by_size(s.t.d, n, order);
  if (*out_converged) put(&s, order, scale);
  return TS_SUCCESS;
}
