/* Eigenvalues of symmetric matrices: reflectors make a tridiagonal matrix, factor_divide.c finds its values and
 * vectors, and the reflectors multiply the vectors. */
#include "kernel/linalg/factor_internal.h"

#include <math.h>

typedef struct eigh {
  const factor *f;
  int64_t n;
  double *d, *e;     /* the tridiagonal matrix */
  double *tau;       /* of the reflectors */
  factor_lines a, z; /* the matrix; its eigenvectors */
  double *phases;    /* of the lines of the tridiagonal matrix that make a complex one real */
  char *w, *by;      /* a line for each reflector of a panel; a number for each of them */
} eigh;

/* An element of a row, and its place in the column. */
static void mirror(const factor *f, char *a, int64_t from, int64_t to) {
  const factor_number x = factor_get_number(f, a, from);
  if (from == to) {
    factor_set_number(f, a, to, (factor_number){x.re, 0});
    return;
  }
  factor_set_number(f, a, to, x);
  factor_set_number(f, a, from, factor_conjugate(x));
}

/* Columns, of the lower triangle, of whose diagonal only real parts count, and its conjugated mirror image, times a
 * power of two that makes its largest element about 1. */
static int load(const eigh *s) {
  const factor *f = s->f;
  const int64_t n = s->n;
  const ts_linalg_view from = {(char *)(uintptr_t)f->matrix, n, 1}, to = {s->a.data, n, 1};
  int scale = 0;
  if (f->most > 0) (void)frexp(f->most, &scale);
  const factor alone = factor_alone(f);
  factor_load(&alone, &from, &to, n, n);
  factor_scale_by_power(f, s->a.data, n * n, -scale);
  for (int64_t i = 0; i < n; i++)
    for (int64_t k = 0; k <= i; k++) mirror(f, s->a.data, i * n + k, k * n + i);
  return scale;
}

/* The elements of line i from `from` on. */
static char *row_of(const eigh *s, int64_t i, int64_t from) {
  return factor_at(s->f, factor_line(s->f, &s->a, i), from);
}
/* The row w of a panel's reflector k. */
static char *w_of(const eigh *s, int64_t k, int64_t from) { return factor_at(s->f, s->w, k * s->n + from); }

/* Subtracts v w' + w v' of `some` reflectors, from number `at` on, from lines `from` .. from + count - 1. */
static void update(const eigh *s, int64_t at, int64_t some, int64_t from, int64_t count) {
  const char *v = row_of(s, at, from), *w = w_of(s, 0, from);
  const ts_linalg_sums first = {w, v, s->n, s->n, some, s->n - from, .conjugate = true},
                       second = {v, w, s->n, s->n, some, s->n - from, .conjugate = true};
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
  factor_conjugate_line(f, w, count);
  factor_multiply_lines(f, &v, w_of(s, 0, from), s->n, before, by);
  factor_sum_lines(f, &(ts_linalg_sums){row_of(s, at, from), by, s->n, 1, before, count, .conjugate = true}, w, s->n,
                   1);
  factor_multiply_lines(f, &v, row_of(s, at, from), s->n, before, by);
  factor_sum_lines(f, &(ts_linalg_sums){w_of(s, 0, from), by, s->n, 1, before, count, .conjugate = true}, w, s->n, 1);
  const double half = -tau / 2 * factor_dot(f, w, v.v, count);
  for (int p = 0; p < factor_planes(f); p++)
    f->v->add_scaled(w + p * f->plane, half, (const char *)v.v + p * f->plane, count);
}

/* Phase j + 1 is phase j times the phase of the element beside the diagonal, which becomes real. */
static double make_real(const eigh *s, int64_t j, factor_number beside) {
  if (!s->f->plane) return beside.re;
  factor_set_value(s->f, s->phases, j + 1, factor_times(factor_value(s->f, s->phases, j), factor_phase(beside)));
  return factor_size(beside);
}

static void reduce_row(const eigh *s, int64_t at, int64_t j) {
  update(s, at, j - at, j, 1);
  s->d[j] = factor_get(s->f, row_of(s, j, j), 0);
  s->e[j] = 0;
  if (j + 1 == s->n) return;
  s->e[j] = make_real(s, j, factor_reflector(s->f, row_of(s, j, j + 1), s->n - j - 1, &s->tau[j]));
  if (s->tau[j] != 0)
    make_w(s, at, j);
  else
    factor_clear(s->f, w_of(s, j - at, 0), s->n);
}

static ts_status make_tridiagonal(const eigh *s) {
  factor_set_value(s->f, s->phases, 0, (factor_number){1, 0});
  const int64_t panel = factor_panel_of(s->f, s->n);
  for (int64_t at = 0; at < s->n; at += panel) {
    const int64_t end = ts_linalg_min(s->n, at + panel);
    for (int64_t j = at; j < end; j++) {
      TS_TRY(ts_check_cancelled(s->f->cancel, "eigh"));
      reduce_row(s, at, j);
    }
    update(s, at, end - at, end, s->n - end);
  }
  return TS_SUCCESS;
}

/* The vectors of the matrix before it was made real. */
static void take_phases(const eigh *s) {
  const factor *f = s->f;
  for (int64_t i = 0; f->plane && i < s->n * s->n; i++)
    factor_set_number(f, s->z.data, i,
                      factor_scaled(factor_value(f, s->phases, i % s->n), factor_get(f, s->z.data, i)));
}

static void put_values(const eigh *s, const int64_t *order, int scale) {
  const factor *f = s->f;
  const int planes = factor_planes(f);
  factor_fill(f, f->results[0], s->n * planes, 0);
  for (int64_t c = 0; c < s->n; c++) factor_put(f, f->results[0], c * planes, ldexp(s->d[order[c]], scale));
}

static void put_vectors(const eigh *s, const int64_t *order) {
  const factor *f = s->f;
  double *signs = s->tau;
  const factor_ordered vectors = {&s->z, order, signs, s->n, s->n, .conjugate = true};
  factor_take_signs(f, &vectors, signs);
  factor_put_columns(f, &vectors, f->results[1]);
}

ts_status factor_eigh(const factor *f, bool *out_converged) {
  const int64_t n = f->spec->rows, square = n * n * f->size;
  double *at = (double *)(void *)f->workspace;
  eigh s = {.f = f, .n = n, .d = at, .e = at + n, .tau = at + 2 * n};
  int64_t *order = (int64_t *)(void *)(at + 3 * n);
  s.phases = (double *)(void *)(order + n);
  char *room = (char *)(s.phases + n);
  s.by = room + factor_divide_bytes(n);
  s.w = factor_aligned(s.by + FACTOR_PANEL * 8);
  s.a = (factor_lines){factor_aligned(s.w + FACTOR_PANEL * n * f->size), n, n};
  s.z = (factor_lines){factor_aligned(s.a.data + square), n, n};
  char *lines = factor_aligned(s.z.data + square), *by = factor_aligned(lines + square);
  const int scale = load(&s);
  TS_TRY(make_tridiagonal(&s));
  factor real = *f;
  real.plane = 0;
  const bool only_values = !factor_reads(f, 1);
  TS_TRY(factor_divide(&(factor_division){&real, n, s.d, s.e, s.z, lines, by, room, only_values}, out_converged));
  if (!*out_converged) return TS_SUCCESS;
  factor_sort_by_size(s.d, n, order);
  put_values(&s, order, scale);
  if (only_values) return TS_SUCCESS;
  take_phases(&s);
  TS_TRY(factor_reflect(&(factor_reflections){
      .f = f, .a = &s.a, .to = &s.z, .tau = s.tau, .room = by + square, .offset = 1, .end = n - 1, .backwards = true}));
  put_vectors(&s, order);
  return TS_SUCCESS;
}
