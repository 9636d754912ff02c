/* Eigenvalues of symmetric matrices: a tridiagonal matrix by reflectors, then implicit QL steps with Wilkinson's shift
 * (H. Bowdler, R. Martin, C. Reinsch, J. Wilkinson, "The QR and QL algorithms for symmetric matrices", 1968). */
#include "kernel/factor_internal.h"

#include <float.h>
#include <math.h>

#define MOST_STEPS 60 /* for each eigenvalue; 2 or 3 are usual */

typedef struct eigh {
  const factor *f;
  int64_t n;
  factor_tridiagonal t; /* with the eigenvectors */
  double *tau;          /* of the reflectors */
  factor_lines a;       /* the matrix */
  char *w;              /* a line */
} eigh;

/* The lower triangle and its mirror image, times a power of two that makes its largest element about 1. */
static int load(const eigh *s) {
  const factor *f = s->f;
  double most = 0;
  int scale = 0;
  for (int64_t i = 0; i < s->n; i++)
    for (int64_t k = 0; k <= i; k++) most = fmax(most, fabs(factor_get(f, f->matrix, i * s->n + k)));
  if (most > 0) (void)frexp(most, &scale);
  for (int64_t i = 0; i < s->n; i++)
    for (int64_t k = 0; k <= i; k++) {
      const double x = ldexp(factor_get(f, f->matrix, i * s->n + k), -scale);
      factor_set(f, s->a.data, i * s->n + k, x);
      factor_set(f, s->a.data, k * s->n + i, x);
    }
  return scale;
}

/* A -= v w' + w v' with w = tau A v - (tau^2 / 2) (v' A v) v, for the rows and columns from `at` on. */
static void update(const eigh *s, int64_t at, const char *v, double tau) {
  const factor *f = s->f;
  const int64_t count = s->n - at;
  for (int64_t i = 0; i < count; i++)
    factor_set(f, s->w, i, tau * f->v->dot(factor_at(f, factor_line(f, &s->a, at + i), at), v, count));
  f->v->add_scaled(s->w, -tau / 2 * f->v->dot(s->w, v, count), v, count);
  for (int64_t i = 0; i < count; i++) {
    char *row = factor_at(f, factor_line(f, &s->a, at + i), at);
    f->v->add_scaled(row, -factor_get(f, v, i), s->w, count);
    f->v->add_scaled(row, -factor_get(f, s->w, i), v, count);
  }
}

static ts_status make_tridiagonal(const eigh *s) {
  const factor *f = s->f;
  for (int64_t j = 0; j < s->n; j++) {
    char *row = factor_line(f, &s->a, j);
    TS_TRY(ts_check_cancelled(f->cancel, "eigh"));
    s->t.d[j] = factor_get(f, row, j);
    s->t.e[j] = j + 1 < s->n ? factor_reflector(f, factor_at(f, row, j + 1), s->n - j - 1, &s->tau[j]) : 0;
    if (j + 1 < s->n && s->tau[j] != 0) update(s, j + 1, factor_at(f, row, j + 1), s->tau[j]);
  }
  return TS_SUCCESS;
}

/* The first place from l on at which the matrix comes apart. */
static int64_t find_part(const factor_tridiagonal *s, int64_t l) {
  const double epsilon = factor_epsilon(s->f);
  int64_t m = l;
  for (; m + 1 < s->n; m++)
    if (fabs(s->e[m]) <= epsilon * (fabs(s->d[m]) + fabs(s->d[m + 1])) + epsilon * epsilon) break;
  return m;
}

/* One QL step of rows l to m. */
static void step(const factor_tridiagonal *s, int64_t l, int64_t m) {
  double *d = s->d, *e = s->e, g = (d[l + 1] - d[l]) / (2 * e[l]), sine = 1, cosine = 1, p = 0;
  g = d[m] - d[l] + e[l] / (g + copysign(factor_length(g, 1), g));
  for (int64_t i = m - 1; i >= l; i--) {
    const double x = sine * e[i], b = cosine * e[i], r = factor_length(x, g);
    e[i + 1] = r;
    if (r == 0) {
      d[i + 1] -= p;
      e[m] = 0;
      return;
    }
    sine = x / r;
    cosine = g / r;
    g = d[i + 1] - p;
    const double t = (d[i] - g) * sine + 2 * cosine * b;
    p = sine * t;
    d[i + 1] = g + p;
    g = cosine * t - b;
    s->f->v->rotate(factor_line(s->f, &s->z, i + 1), factor_line(s->f, &s->z, i), cosine, sine, s->z.length);
  }
  d[l] -= p;
  e[l] = g;
  e[m] = 0;
}

ts_status factor_diagonalize(const factor_tridiagonal *s, bool *out_converged) {
  *out_converged = true;
  for (int64_t l = 0; l < s->n; l++) {
    int steps = 0;
    for (int64_t m = find_part(s, l); m > l; m = find_part(s, l)) {
      TS_TRY(ts_check_cancelled(s->f->cancel, "eigh"));
      *out_converged = steps++ < MOST_STEPS;
      if (!*out_converged) return TS_SUCCESS;
      step(s, l, m);
    }
  }
  return TS_SUCCESS;
}

/* In descending order of size; of equal sizes the positive one is first. */
static bool is_before(double a, double b) { return fabs(a) > fabs(b) || (fabs(a) == fabs(b) && a > b); }

void factor_sort_by_size(const double *values, int64_t count, int64_t *order) {
  for (int64_t i = 0; i < count; i++) {
    int64_t at = i;
    for (; at > 0 && is_before(values[i], values[order[at - 1]]); at--) order[at] = order[at - 1];
    order[at] = i;
  }
}

static void put(const eigh *s, const int64_t *order, int scale) {
  const factor *f = s->f;
  for (int64_t c = 0; c < s->n; c++) {
    const char *line = factor_line(f, &s->t.z, order[c]);
    const double sign = factor_is_turned(f, line, s->n) ? -1 : 1;
    factor_set(f, f->results[0], c, ldexp(s->t.d[order[c]], scale));
    for (int64_t i = 0; i < s->n; i++) factor_set(f, f->results[1], i * s->n + c, sign * factor_get(f, line, i));
  }
}

ts_status factor_eigh(const factor *f, bool *out_converged) {
  const int64_t n = f->spec->rows;
  double *at = (double *)(void *)f->workspace;
  eigh s = {.f = f, .n = n, .t = {.f = f, .n = n, .d = at, .e = at + n}, .tau = at + 2 * n};
  int64_t *order = (int64_t *)(void *)(at + 3 * n);
  s.w = (char *)(order + n);
  s.a = (factor_lines){s.w + n * 8, n, n};
  s.t.z = (factor_lines){s.a.data + n * n * f->size, n, n};
  const int scale = load(&s);
  TS_TRY(make_tridiagonal(&s));
  TS_TRY(factor_product(f, &s.a, 1, n - 1, s.tau, &s.t.z));
  TS_TRY(factor_diagonalize(&s.t, out_converged));
  factor_sort_by_size(s.t.d, n, order);
  if (*out_converged) put(&s, order, scale);
  return TS_SUCCESS;
}
