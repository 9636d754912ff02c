/* Singular values by Jacobi's rotations of the rows of R, of A = Q R, until they are orthogonal (J. Demmel, K. Veselic,
 * "Jacobi's method is more accurate than QR", 1992): the rows are then the right singular vectors times the values,
 * and Q with the same rotations the left ones. A matrix with more columns than rows is transposed. */
#include "kernel/factor_internal.h"

#include <math.h>

/* Jacobi's rotations; 6 to 10 are usual. */
#define MOST_SWEEPS 60

typedef struct svd {
  const factor *f;
  int64_t m, n; /* m >= n */
  bool transposed;
  int scale;
  double *squares, *tau, *values; /* of each row of R: its square */
  int64_t *order;                 /* of the rows, from the longest on */
  factor_lines a, r, q;
} svd;

/* ---- Jacobi's rotations, of complex rows, too */

bool factor_jacobi_rotation(const factor *f, int64_t n, double product, double *square_p, double *square_q,
                            factor_rotation *out) {
  const double most = sqrt(*square_p) * sqrt(*square_q);
  if (fabs(product) <= 4 * sqrt((double)n) * factor_epsilon(f) * most) return false;
  const double zeta = (*square_q - *square_p) / (2 * product);
  const double t = copysign(1, zeta) / (fabs(zeta) + factor_length(1, zeta)), cosine = 1 / factor_length(1, t);
  *out = (factor_rotation){cosine, cosine * t};
  *square_p -= t * product;
  *square_q += t * product;
  return true;
}

static void sort(const factor_jacobi *j) {
  for (int64_t i = 0; i < j->n; i++) {
    int64_t at = i;
    for (; at > 0 && j->squares[i] > j->squares[j->order[at - 1]]; at--) j->order[at] = j->order[at - 1];
    j->order[at] = i;
  }
}

/* Once over all pairs, the longer row of each first. */
static ts_status sweep(const factor_jacobi *j, bool *out_rotated) {
  *out_rotated = false;
  j->measure(j->rows);
  sort(j);
  for (int64_t i = 0; i < j->n; i++) {
    TS_TRY(ts_check_cancelled(j->f->cancel, "svd"));
    for (int64_t k = i + 1; k < j->n; k++) {
      const int64_t p = j->order[i], q = j->order[k];
      if (j->squares[p] <= 0 || j->squares[q] <= 0) continue;
      *out_rotated |= j->rotate(j->rows, p, q);
    }
  }
  return TS_SUCCESS;
}

ts_status factor_jacobi_run(const factor_jacobi *j, bool *out_converged) {
  bool rotated = true;
  for (int i = 0; rotated && i < MOST_SWEEPS; i++) TS_TRY(sweep(j, &rotated));
  sort(j);
  *out_converged = !rotated;
  return TS_SUCCESS;
}

/* ---- the factors */

/* The matrix by columns, times a power of two that makes its largest element about 1. */
static void load(svd *s) {
  const factor *f = s->f;
  double most = 0;
  for (int64_t i = 0; i < s->m * s->n; i++) most = fmax(most, fabs(factor_get(f, f->matrix, i)));
  if (most > 0) (void)frexp(most, &s->scale);
  for (int64_t c = 0; c < s->n; c++)
    for (int64_t i = 0; i < s->m; i++)
      factor_set(f, s->a.data, c * s->m + i,
                 ldexp(factor_get(f, f->matrix, s->transposed ? c * s->m + i : i * s->n + c), -s->scale));
}

static void take_r(const svd *s, const double *diagonal) {
  const factor *f = s->f;
  for (int64_t i = 0; i < s->n; i++)
    for (int64_t k = 0; k < s->n; k++)
      factor_set(f, s->r.data, i * s->n + k,
                 k < i    ? 0
                 : k == i ? diagonal[i]
                          : factor_get(f, factor_line(f, &s->a, k), i));
}

/* Rows so short that their squares are not exact are zeros: they are far below the error of the others. */
static void measure(const void *rows) {
  const svd *s = rows;
  const factor *f = s->f;
  const double least = f->size == 4 ? 0x1p-100 : 0x1p-960;
  for (int64_t i = 0; i < s->n; i++) {
    char *row = factor_line(f, &s->r, i);
    s->squares[i] = f->v->dot(row, row, s->n);
    if (s->squares[i] >= least) continue;
    s->squares[i] = 0;
    factor_fill(f, row, s->n, 0);
  }
}

static bool rotate(const void *rows, int64_t p, int64_t q) {
  const svd *s = rows;
  const factor *f = s->f;
  char *x = factor_line(f, &s->r, p), *y = factor_line(f, &s->r, q);
  factor_rotation r;
  if (!factor_jacobi_rotation(f, s->n, f->v->dot(x, y, s->n), &s->squares[p], &s->squares[q], &r)) return false;
  f->v->rotate(y, x, r.cosine, r.sine, s->n);
  f->v->rotate(factor_line(f, &s->q, q), factor_line(f, &s->q, p), r.cosine, r.sine, s->m);
  return true;
}

/* Takes from a line what it has of the first `count` rows in order, twice; returns what is left of its length. */
static double make_orthogonal(const svd *s, char *line, int64_t count) {
  const factor *f = s->f;
  for (int twice = 0; twice < 2; twice++)
    for (int64_t i = 0; i < count; i++) {
      const char *row = factor_line(f, &s->r, s->order[i]);
      f->v->add_scaled(line, -f->v->dot(row, line, s->n), row, s->n);
    }
  return sqrt(f->v->dot(line, line, s->n));
}

static void scale_line(const svd *s, char *line, double by) {
  for (int64_t i = 0; i < s->n; i++) factor_set(s->f, line, i, factor_get(s->f, line, i) / by);
}

/* Rows of length 1. Those that were zeros become what is missing of an orthonormal basis: of all unit vectors one keeps
 * at least the square root of 1/n of its length. */
static void normalize(const svd *s) {
  const factor *f = s->f;
  int64_t next = 0;
  for (int64_t c = 0; c < s->n; c++) {
    char *row = factor_line(f, &s->r, s->order[c]);
    double length = sqrt(s->squares[s->order[c]]);
    s->values[c] = ldexp(length, s->scale);
    while (length == 0 && next < s->n) {
      factor_fill(f, row, s->n, 0);
      factor_set(f, row, next++, 1);
      length = make_orthogonal(s, row, c);
      if (length < 0.5 / sqrt((double)s->n)) length = 0;
    }
    scale_line(s, row, length);
  }
}

/* The columns of U and the rows of V' are lines here; their signs follow V'. */
static void put(const svd *s) {
  const factor *f = s->f;
  const factor_lines *left = s->transposed ? &s->r : &s->q, *right = s->transposed ? &s->q : &s->r;
  for (int64_t c = 0; c < s->n; c++) factor_set(f, f->results[1], c, s->values[c]);
  for (int64_t c = 0; c < ts_linalg_max(left->count, right->count); c++) {
    const int64_t from = c < s->n ? s->order[c] : c;
    const char *u = factor_line(f, left, from), *v = factor_line(f, right, from);
    const double sign = c < right->count && factor_is_turned(f, v, right->length) ? -1 : 1;
    for (int64_t i = 0; c < left->count && i < left->length; i++)
      factor_set(f, f->results[0], i * left->count + c, (c < s->n ? sign : 1) * factor_get(f, u, i));
    for (int64_t i = 0; c < right->count && i < right->length; i++)
      factor_set(f, f->results[2], c * right->length + i, sign * factor_get(f, v, i));
  }
}

ts_status factor_svd(const factor *f, bool *out_converged) {
  const bool transposed = f->spec->rows < f->spec->cols;
  const int64_t m = transposed ? f->spec->cols : f->spec->rows, n = transposed ? f->spec->rows : f->spec->cols;
  svd s = {.f = f, .m = m, .n = n, .transposed = transposed, .squares = (double *)(void *)f->workspace};
  s.tau = s.squares + n;
  s.values = s.tau + n;
  s.order = (int64_t *)(void *)(s.values + n);
  s.a = (factor_lines){(char *)(s.order + n), n, m};
  s.r = (factor_lines){s.a.data + n * m * f->size, n, n};
  s.q = (factor_lines){s.r.data + n * n * f->size, f->spec->full ? m : n, m};
  load(&s);
  const factor_steps steps = {.count = n, .diagonal = s.values, .tau = s.tau, .make = factor_reflect_plainly};
  TS_TRY(factor_columns(f, &s.a, &steps));
  take_r(&s, s.values);
  TS_TRY(factor_product(f, &s.a, 0, n, s.tau, &s.q));
  const factor_jacobi j = {f, n, s.squares, s.order, measure, rotate, &s};
  TS_TRY(factor_jacobi_run(&j, out_converged));
  if (!*out_converged) return TS_SUCCESS;
  normalize(&s);
  put(&s);
  return TS_SUCCESS;
}
