/* Singular values of complex matrices by Jacobi's rotations of the rows of R, of A = Q R, until they are orthogonal
 * (J. Demmel, K. Veselic, "Jacobi's method is more accurate than QR", 1992): the rows are then the right singular
 * vectors times the values, and Q with the same rotations the left ones. Before two rows are rotated, one of them is
 * multiplied by the phase that makes their product real, and the column of Q by its conjugate. A matrix with more
 * columns than rows is transposed. */
#include "kernel/factor_complex.h"

#include <math.h>

#include <string.h>

/* Jacobi's rotations; 6 to 10 are usual. */
#define MOST_SWEEPS 60

typedef struct complex_svd {
  const factor *f;
  int64_t m, n; /* m >= n */
  bool transposed;
  int scale;
  double *squares, *tau, *values; /* of each row of R: its square */
  factor_numbers diagonal;
  int64_t *order; /* of the rows, from the longest on */
  factor_rows a, r, q;
} complex_svd;

/* The matrix by columns, or by rows where it is transposed, times a power of two that makes its largest part about 1.
 */
static void load(complex_svd *s) {
  const factor_view in = {(double *)(uintptr_t)s->f->matrix, s->transposed ? s->m : 1, s->transposed ? 1 : s->n};
  (void)frexp(factor_largest_part(in.data, s->m * s->n), &s->scale);
  factor_load(&in, &s->a, s->n, s->m);
  for (int64_t i = 0; i < 2 * s->m * s->n; i++) s->a.data[i] = ldexp(s->a.data[i], -s->scale);
}

static void take_r(const complex_svd *s) {
  for (int64_t i = 0; i < s->n; i++)
    for (int64_t k = 0; k < s->n; k++)
      factor_put_number(factor_row(&s->r, i), k,
                        k < i    ? (factor_number){0, 0}
                        : k == i ? factor_number_at(s->diagonal, i)
                                 : factor_number_at(factor_row(&s->a, k), i));
}

static void clear(factor_numbers x, int64_t count) {
  memset(x.re, 0, (size_t)count * sizeof *x.re);
  memset(x.im, 0, (size_t)count * sizeof *x.im);
}

/* Rows so short that their squares are not exact are zeros: they are far below the error of the others. */
static void measure(const complex_svd *s) {
  for (int64_t i = 0; i < s->n; i++) {
    const factor_numbers row = factor_row(&s->r, i);
    s->squares[i] = factor_square(s->f, row, s->n);
    if (s->squares[i] >= 0x1p-960) continue;
    s->squares[i] = 0;
    clear(row, s->n);
  }
}

/* Of two rows with their product and their squares, which are those after it. False when they are orthogonal. */
static bool jacobi_rotation(const complex_svd *s, double product, double *square_p, double *square_q,
                            factor_rotation *out) {
  const double most = sqrt(*square_p) * sqrt(*square_q);
  if (fabs(product) <= 4 * sqrt((double)s->n) * factor_epsilon(s->f) * most) return false;
  const double zeta = (*square_q - *square_p) / (2 * product);
  const double t = copysign(1, zeta) / (fabs(zeta) + factor_length(1, zeta)), cosine = 1 / factor_length(1, t);
  *out = (factor_rotation){cosine, cosine * t};
  *square_p -= t * product;
  *square_q += t * product;
  return true;
}

static void turn(const factor *f, factor_numbers x, factor_numbers y, factor_rotation r, int64_t count) {
  f->v->rotate(x.re, y.re, r.cosine, r.sine, count);
  f->v->rotate(x.im, y.im, r.cosine, r.sine, count);
}

static bool rotate(const complex_svd *s, int64_t p, int64_t q) {
  const factor *f = s->f;
  const factor_numbers x = factor_row(&s->r, p), y = factor_row(&s->r, q);
  const factor_number inner = factor_inner(f, x, y, s->n), phase = factor_phase(inner);
  factor_rotation r;
  if (!jacobi_rotation(s, factor_size(inner), &s->squares[p], &s->squares[q], &r)) return false;
  factor_scale(y, factor_conjugate(phase), s->n);
  factor_scale(factor_row(&s->q, q), phase, s->m);
  turn(f, y, x, r, s->n);
  turn(f, factor_row(&s->q, q), factor_row(&s->q, p), r, s->m);
  return true;
}

static void sort(const complex_svd *s) {
  for (int64_t i = 0; i < s->n; i++) {
    int64_t at = i;
    for (; at > 0 && s->squares[i] > s->squares[s->order[at - 1]]; at--) s->order[at] = s->order[at - 1];
    s->order[at] = i;
  }
}

/* Once over all pairs, the longer row of each first. */
static ts_status sweep(const complex_svd *s, bool *out_rotated) {
  *out_rotated = false;
  measure(s);
  sort(s);
  for (int64_t i = 0; i < s->n; i++) {
    TS_TRY(ts_check_cancelled(s->f->cancel, "svd"));
    for (int64_t k = i + 1; k < s->n; k++) {
      const int64_t p = s->order[i], q = s->order[k];
      if (s->squares[p] > 0 && s->squares[q] > 0) *out_rotated |= rotate(s, p, q);
    }
  }
  return TS_SUCCESS;
}

static ts_status run_sweeps(const complex_svd *s, bool *out_converged) {
  bool rotated = true;
  for (int i = 0; rotated && i < MOST_SWEEPS; i++) TS_TRY(sweep(s, &rotated));
  sort(s);
  *out_converged = !rotated;
  return TS_SUCCESS;
}

/* Takes from a line what it has of the first `count` rows in order, twice; returns what is left of its length. */
static double make_orthogonal(const complex_svd *s, factor_numbers line, int64_t count) {
  for (int twice = 0; twice < 2; twice++)
    for (int64_t i = 0; i < count; i++) {
      const factor_numbers row = factor_row(&s->r, s->order[i]);
      factor_add_scaled(s->f, line, factor_negative(factor_inner(s->f, row, line, s->n)), row, s->n);
    }
  return sqrt(factor_square(s->f, line, s->n));
}

/* A row of zeros becomes one that is missing of an orthonormal basis: of all unit vectors, from `*next` on, one keeps
 * at least the square root of 1/n of its length. */
static double complete(const complex_svd *s, int64_t c, int64_t *next) {
  const factor_numbers row = factor_row(&s->r, s->order[c]);
  double length = 0;
  while (length == 0 && *next < s->n) {
    clear(row, s->n);
    row.re[(*next)++] = 1;
    length = make_orthogonal(s, row, c);
    if (length < 0.5 / sqrt((double)s->n)) length = 0;
  }
  return length;
}

static void normalize(const complex_svd *s) {
  int64_t next = 0;
  for (int64_t c = 0; c < s->n; c++) {
    const factor_numbers row = factor_row(&s->r, s->order[c]);
    double length = sqrt(s->squares[s->order[c]]);
    s->values[c] = ldexp(length, s->scale);
    if (length == 0) length = complete(s, c, &next);
    for (int64_t i = 0; i < s->n; i++) row.re[i] /= length, row.im[i] /= length;
  }
}

/* The columns of U and the rows of V^H are lines here; their phases follow V^H. */
static void put(const complex_svd *s) {
  const factor *f = s->f;
  const factor_rows *left = s->transposed ? &s->r : &s->q, *right = s->transposed ? &s->q : &s->r;
  const factor_view us = {f->results[0], 1, left->count}, vs = {f->results[2], right->length, 1};
  memcpy(f->results[1], s->values, (size_t)s->n * sizeof *s->values);
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

static void place(complex_svd *s) {
  const int64_t n = s->n, m = s->m;
  s->squares = (double *)(void *)s->f->workspace;
  s->tau = s->squares + n;
  s->values = s->tau + n;
  s->diagonal = (factor_numbers){s->values + n, s->values + 2 * n};
  s->order = (int64_t *)(void *)(s->values + 3 * n);
  s->a = (factor_rows){s->values + 4 * n, n, m};
  s->r = (factor_rows){factor_rows_end(&s->a), n, n};
  s->q = (factor_rows){factor_rows_end(&s->r), s->f->spec->full ? m : n, m};
}

ts_status factor_complex_svd(const factor *f, bool *out_converged) {
  const bool transposed = f->spec->rows < f->spec->cols;
  complex_svd s = {.f = f,
                   .m = ts_linalg_max(f->spec->rows, f->spec->cols),
                   .n = ts_linalg_min(f->spec->rows, f->spec->cols),
                   .transposed = transposed};
  place(&s);
  load(&s);
  TS_TRY(factor_complex_columns(f, &s.a, s.n, s.diagonal, s.tau));
  take_r(&s);
  TS_TRY(factor_complex_product(f, &s.a, 0, s.n, s.tau, &s.q));
  TS_TRY(run_sweeps(&s, out_converged));
  if (!*out_converged) return TS_SUCCESS;
  normalize(&s);
  put(&s);
  return TS_SUCCESS;
}
