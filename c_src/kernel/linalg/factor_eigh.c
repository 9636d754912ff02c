/* Eigenvalues of symmetric matrices: a tridiagonal matrix by reflectors, then its values and vectors by
 * factor_divide.c, and the reflectors' product with these. */
#include "kernel/linalg/factor_internal.h"

#include <math.h>

typedef struct eigh {
  const factor *f;
  int64_t n;
  double *d, *e;     /* the tridiagonal matrix */
  double *tau;       /* of the reflectors */
  factor_lines a, z; /* the matrix; its eigenvectors */
  char *w, *by;      /* a line for each reflector of a panel; a number for each of them */
} eigh;

/* The lower triangle and its mirror image, times a power of two that makes its largest element about 1. */
static int load(const eigh *s) {
  const factor *f = s->f;
  const int64_t n = s->n;
  const ts_linalg_view from = {(char *)(uintptr_t)f->matrix, n, 1}, to = {s->a.data, n, 1};
  double most = 0;
  int scale = 0;
  for (int64_t i = 0; i < n; i++)
    most = fmax(most, f->v->largest(factor_at(f, (char *)(uintptr_t)f->matrix, i * n), i + 1));
  if (most > 0) (void)frexp(most, &scale);
  ts_linalg_copy(&from, &to, n, n, f->size);
  factor_scale_by_power(f, s->a.data, n * n, -scale);
  for (int64_t i = 0; i < n; i++)
    for (int64_t k = 0; k < i; k++) factor_set(f, s->a.data, k * n + i, factor_get(f, s->a.data, i * n + k));
  return scale;
}

/* The elements of line i from `from` on. */
static char *row_of(const eigh *s, int64_t i, int64_t from) {
  return factor_at(s->f, factor_line(s->f, &s->a, i), from);
}
/* Those of w of a panel's reflector k. */
static char *w_of(const eigh *s, int64_t k, int64_t from) { return factor_at(s->f, s->w, k * s->n + from); }

/* Takes v w' + w v' of `some` reflectors, the first of which is number `at`, from lines `from` .. from + count - 1. */
static void update(const eigh *s, int64_t at, int64_t some, int64_t from, int64_t count) {
  const char *v = row_of(s, at, from), *w = w_of(s, 0, from);
  const ts_linalg_sums first = {w, v, s->n, s->n, some, s->n - from}, second = {v, w, s->n, s->n, some, s->n - from};
  factor_take_sums(s->f, &first, row_of(s, from, from), s->n, count);
  factor_take_sums(s->f, &second, row_of(s, from, from), s->n, count);
}

/* w = tau A v - (tau^2 / 2) (v' A v) v of reflector j, where A lacks the reflectors of the panel before it. */
static void make_w(const eigh *s, int64_t at, int64_t j) {
  const factor *f = s->f;
  const int64_t from = j + 1, count = s->n - from, before = j - at;
  const double tau = s->tau[j];
  const ts_linalg_reflector v = {row_of(s, j, from), count, -tau};
  char *w = w_of(s, before, from), *by = s->by;
  factor_products(f, &v, row_of(s, from, from), s->n, count, w);
  f->v->products(&v, w_of(s, 0, from), s->n, before, by);
  f->v->take_sums(&(ts_linalg_sums){row_of(s, at, from), by, s->n, 1, before, count}, w, s->n, 1);
  f->v->products(&v, row_of(s, at, from), s->n, before, by);
  f->v->take_sums(&(ts_linalg_sums){w_of(s, 0, from), by, s->n, 1, before, count}, w, s->n, 1);
  f->v->add_scaled(w, -tau / 2 * f->v->dot(w, v.v, count), v.v, count);
}

static void reduce_row(const eigh *s, int64_t at, int64_t j) {
  update(s, at, j - at, j, 1);
  s->d[j] = factor_get(s->f, row_of(s, j, j), 0);
  s->e[j] = 0;
  if (j + 1 == s->n) return;
  s->e[j] = factor_reflector(s->f, row_of(s, j, j + 1), s->n - j - 1, &s->tau[j]);
  if (s->tau[j] != 0)
    make_w(s, at, j);
  else
    factor_fill(s->f, w_of(s, j - at, 0), s->n, 0);
}

static ts_status make_tridiagonal(const eigh *s) {
  for (int64_t at = 0; at < s->n; at += FACTOR_PANEL) {
    const int64_t end = ts_linalg_min(s->n, at + FACTOR_PANEL);
    for (int64_t j = at; j < end; j++) {
      TS_TRY(ts_check_cancelled(s->f->cancel, "eigh"));
      reduce_row(s, at, j);
    }
    update(s, at, end - at, end, s->n - end);
  }
  return TS_SUCCESS;
}

static void put(const eigh *s, const int64_t *order, int scale) {
  const factor *f = s->f;
  double *signs = s->tau;
  const factor_ordered vectors = {&s->z, order, signs, s->n, s->n};
  for (int64_t c = 0; c < s->n; c++) factor_set(f, f->results[0], c, ldexp(s->d[order[c]], scale));
  factor_take_signs(f, &vectors, signs);
  factor_put_columns(f, &vectors, f->results[1]);
}

ts_status factor_eigh(const factor *f, bool *out_converged) {
  const int64_t n = f->spec->rows, square = n * n * f->size;
  double *at = (double *)(void *)f->workspace;
  eigh s = {.f = f, .n = n, .d = at, .e = at + n, .tau = at + 2 * n};
  int64_t *order = (int64_t *)(void *)(at + 3 * n);
  char *room = (char *)(order + n);
  s.by = room + factor_divide_bytes(n);
  s.w = factor_aligned(s.by + FACTOR_PANEL * 8);
  s.a = (factor_lines){factor_aligned(s.w + FACTOR_PANEL * n * f->size), n, n};
  s.z = (factor_lines){factor_aligned(s.a.data + square), n, n};
  char *lines = factor_aligned(s.z.data + square), *by = factor_aligned(lines + square);
  const int scale = load(&s);
  TS_TRY(make_tridiagonal(&s));
  TS_TRY(factor_divide(&(factor_division){f, n, s.d, s.e, s.z, lines, by, room}, out_converged));
  if (!*out_converged) return TS_SUCCESS;
  TS_TRY(factor_reflect(&(factor_reflections){
      .f = f, .a = &s.a, .to = &s.z, .tau = s.tau, .room = by + square, .offset = 1, .end = n - 1, .backwards = true}));
  factor_sort_by_size(s.d, n, order);
  put(&s, order, scale);
  return TS_SUCCESS;
}
