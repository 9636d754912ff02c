/* Singular values of complex matrices: a bidiagonal matrix by reflectors from the left and the right in turn, made real
 * by a phase for each column of their products, then the steps of factor_bidiagonal.c. A matrix with more columns than
 * rows is transposed. */
#include "kernel/linalg/factor_complex.h"
#include "kernel/linalg/factor_turns.h"

#include <string.h>

typedef struct complex_svd {
  const factor *f;
  int64_t m, n; /* m >= n */
  bool transposed;
  int scale;
  double *left_tau, *right_tau, *numbers; /* numbers: two pairs for each column */
  factor_numbers diagonal, above;         /* of the bidiagonal matrix */
  factor_numbers y;                       /* a column */
  int64_t *order;                         /* of the values, from the largest on */
  factor_rows a, u; /* the columns, then the reflectors from the left; those from the right, from element j + 1 on */
  factor_rows q, r; /* the left and the right vectors */
  factor_bidiagonal b;
} complex_svd;

/* The matrix by columns, or by rows where it is transposed, times a power of two that makes its largest part about 1.
 */
static void load(complex_svd *s) {
  const factor_view in = {(double *)(uintptr_t)s->f->matrix, s->transposed ? s->m : 1, s->transposed ? 1 : s->n};
  (void)frexp(s->f->most, &s->scale);
  factor_load(&in, &s->a, s->n, s->m);
  for (int64_t i = 0; i < 2 * s->m * s->n; i++) s->a.data[i] = ldexp(s->a.data[i], -s->scale);
}

/* The reflector that makes row j behind the diagonal, conjugated, a multiple of the first unit vector. */
static factor_reflection reflect_row(const complex_svd *s, int64_t j) {
  const int64_t from = j + 1, count = s->n - from;
  const factor_numbers u = factor_from(factor_row(&s->u, j), from);
  for (int64_t c = 0; c < count; c++)
    factor_put_number(u, c, factor_conjugate(factor_number_at(factor_row(&s->a, from + c), j)));
  factor_put_number(s->above, j, factor_conjugate(factor_complex_reflector(s->f, u, count, &s->right_tau[j])));
  return (factor_reflection){u, count, s->right_tau[j]};
}

/* y = A u, for the rows and columns from `from` on: both parts of a column count for both parts of y. */
static void multiply(const complex_svd *s, const factor_reflection *u, int64_t from) {
  const int64_t length = s->m - from;
  for (int64_t c = 0; c < u->length; c++) {
    double *by = s->numbers + 4 * c;
    by[0] = by[3] = -u->v.re[c];
    by[1] = -u->v.im[c];
    by[2] = u->v.im[c];
  }
  memset(s->y.re, 0, (size_t)(2 * s->m) * sizeof *s->y.re);
  const ts_linalg_sums sums = {factor_row(&s->a, from).re + from, s->numbers, s->m, 2, 2 * u->length, length};
  factor_take_columns(s->f, &sums, (char *)s->y.re, s->m, 2);
}

/* A -= tau A u u^H, for the rows and columns behind j. */
static void reduce_row(const complex_svd *s, int64_t j) {
  const factor_reflection u = reflect_row(s, j);
  if (u.tau == 0) return;
  multiply(s, &u, j + 1);
  for (int64_t c = 0; c < u.length; c++) {
    s->numbers[2 * c] = -u.tau * u.v.re[c];
    s->numbers[2 * c + 1] = u.tau * u.v.im[c];
  }
  const factor_reflection y = {s->y, s->m - j - 1, 0};
  factor_complex_add(s->f, &y, s->numbers, &s->a, j + 1);
}

static ts_status make_bidiagonal(const complex_svd *s) {
  for (int64_t j = 0; j < s->n; j++) {
    const factor_numbers column = factor_from(factor_row(&s->a, j), j);
    TS_TRY(ts_check_cancelled(s->f->cancel, "svd"));
    factor_put_number(s->diagonal, j, factor_complex_reflector(s->f, column, s->m - j, &s->left_tau[j]));
    const factor_reflection v = {column, s->m - j, s->left_tau[j]};
    factor_complex_reflect(s->f, &v, &s->a, j + 1, j);
    if (j + 1 < s->n) reduce_row(s, j);
  }
  return TS_SUCCESS;
}

/* Columns of both products times phases, so that the bidiagonal matrix is that of the sizes of its elements. */
static void make_real(const complex_svd *s) {
  factor_number right = {1, 0};
  for (int64_t j = 0; j < s->n; j++) {
    const factor_number d = factor_number_at(s->diagonal, j), e = factor_number_at(s->above, j);
    const factor_number left = factor_phase(factor_times(d, right));
    s->b.d[j] = factor_size(d);
    s->b.e[j] = j + 1 < s->n ? factor_size(e) : 0;
    factor_scale(factor_row(&s->q, j), left, s->m);
    factor_scale(factor_row(&s->r, j), right, s->n);
    if (j + 1 < s->n) right = factor_phase(factor_times(left, factor_conjugate(e)));
  }
}

/* A value that is negative changes its sign, and with it its right vector. Right vectors become rows of V^H. */
static void order_values(const complex_svd *s) {
  for (int64_t c = 0; c < s->n; c++) {
    const double sign = s->b.d[c] < 0 ? -1 : 1;
    const factor_numbers v = factor_row(&s->r, c);
    s->b.d[c] *= sign;
    for (int64_t i = 0; i < s->n; i++) factor_put_number(v, i, (factor_number){sign * v.re[i], -sign * v.im[i]});
  }
  factor_sort_by_size(s->b.d, s->n, s->order);
}

/* The columns of U and the rows of V^H are lines here; their phases follow V^H. */
static void put(const complex_svd *s) {
  const factor *f = s->f;
  const factor_rows *left = s->transposed ? &s->r : &s->q, *right = s->transposed ? &s->q : &s->r;
  const factor_view us = {f->results[0], 1, left->count}, vs = {f->results[2], right->length, 1};
  for (int64_t c = 0; c < s->n; c++) ((double *)f->results[1])[c] = ldexp(s->b.d[s->order[c]], s->scale);
  for (int64_t c = 0; c < ts_linalg_max(left->count, right->count); c++) {
    const int64_t from = c < s->n ? s->order[c] : c;
    factor_number phase = {1, 0};
    if (c < right->count) {
      const factor_numbers v = factor_row(right, from);
      phase = factor_largest_phase(v, right->length);
      for (int64_t i = 0; i < right->length; i++)
        factor_view_put(&vs, c, i, factor_times(factor_number_at(v, i), factor_conjugate(phase)));
    }
    for (int64_t i = 0; c < left->count && i < left->length; i++) {
      const factor_number u = factor_number_at(factor_row(left, from), i);
      factor_view_put(&us, c, i, c < s->n ? factor_times(u, phase) : u);
    }
  }
}

static void place_numbers(complex_svd *s) {
  const int64_t n = s->n;
  double *at = (double *)(void *)s->f->workspace;
  s->b = (factor_bidiagonal){.f = s->f, .n = n, .d = at, .e = at + n};
  s->left_tau = at + 2 * n;
  s->right_tau = at + 3 * n;
  s->diagonal = (factor_numbers){at + 4 * n, at + 5 * n};
  s->above = (factor_numbers){at + 6 * n, at + 7 * n};
  s->numbers = at + 8 * n;
  s->order = (int64_t *)(void *)(at + 12 * n);
  s->b.room = (char *)(s->order + n);
}

static void place(complex_svd *s) {
  const int64_t m = s->m, n = s->n;
  place_numbers(s);
  s->y.re = (double *)(void *)factor_aligned(s->b.room + 2 * factor_turns_bytes(n));
  s->y.im = s->y.re + m;
  s->a = (factor_rows){s->y.im + m, n, m};
  s->u = (factor_rows){factor_rows_end(&s->a), n, n};
  s->r = (factor_rows){factor_rows_end(&s->u), n, n};
  s->q = (factor_rows){factor_rows_end(&s->r), s->f->spec->full ? m : n, m};
  s->b.left = (factor_lines){(char *)s->q.data, n, 2 * m};
  s->b.right = (factor_lines){(char *)s->r.data, n, 2 * n};
  s->b.left_parts = (char *)s->a.data;
  s->b.right_parts = (char *)s->u.data;
}

ts_status factor_complex_svd(const factor *f, bool *out_converged) {
  const bool transposed = f->spec->rows < f->spec->cols;
  complex_svd s = {.f = f,
                   .m = ts_linalg_max(f->spec->rows, f->spec->cols),
                   .n = ts_linalg_min(f->spec->rows, f->spec->cols),
                   .transposed = transposed};
  place(&s);
  load(&s);
  TS_TRY(make_bidiagonal(&s));
  TS_TRY(factor_complex_product(f, &s.a, 0, s.n, s.left_tau, &s.q));
  TS_TRY(factor_complex_product(f, &s.u, 1, ts_linalg_max(s.n - 1, 0), s.right_tau, &s.r));
  make_real(&s);
  TS_TRY(factor_bidiagonal_values(&s.b, out_converged));
  if (!*out_converged) return TS_SUCCESS;
  order_values(&s);
  put(&s);
  return TS_SUCCESS;
}
