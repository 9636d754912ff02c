/* QR factors by Householder's reflectors, with the signs of Nx's. */
#include "kernel/linalg/factor_internal.h"

#include <math.h>

/* A column counts as zero below the diagonal when its norm there is at most this fraction of it: rounding error. */
#define NOTHING 1e-5

/* The reflector of factor_reflect_vector that makes x a positive multiple. Where the first element is above 0, it less
 * the norm is computed without cancellation; it is no shorter than about 5e-11 of the norm, as there is something
 * below. */
static double reflect_to_positive(const factor *f, const factor_vector *v, double *out_tau) {
  if (v->first <= 0) return factor_reflect_vector(f, v, out_tau);
  const double norm = hypot(v->first, v->below), part = v->below / (v->first + norm), v0 = -v->below * part;
  for (int64_t i = 1; i < v->length; i++) factor_set(f, v->x, i, factor_get(f, v->x, i) / v0);
  factor_set(f, v->x, 0, 1);
  *out_tau = 2 * part * part / (1 + part * part);
  return ldexp(norm, -v->power);
}

/* The rows of R which `sign` has as -1 are to be negated: where there is nothing to reflect, a reflector and that
 * change of sign are together near to the identity. */
static void reflect_column(const factor *f, char *x, int64_t length, int64_t j, const factor_steps *out) {
  const factor_vector v = factor_measure(f, x, length);
  const bool keep = v.below <= NOTHING * fabs(v.first);
  out->diagonal[j] = (keep ? factor_reflect_vector : reflect_to_positive)(f, &v, &out->tau[j]);
  out->sign[j] = keep && out->tau[j] != 0 ? -1 : 1;
}

typedef struct put_run {
  const factor *f;
  const factor_lines *a;
  const factor_steps *s;
  double by; /* the elements of R are times this */
} put_run;

/* Elements of the columns up to the diagonal (without it); no zero is negative. */
static void put_row(const put_run *p, int64_t i) {
  const factor *f = p->f;
  const factor_steps *s = p->s;
  const int64_t n = p->a->count, least = ts_linalg_min(n, p->a->length), zeros = i < least ? i : n;
  const int planes = factor_planes(f);
  char *row = (char *)f->results[1] + i * n * planes * f->size;
  factor_fill(f, row, zeros * planes, 0);
  if (i < s->count) {
    const factor_number d = factor_value(f, s->diagonal, i);
    factor_set(f, row, i * planes, d.re);
    if (f->plane) factor_set(f, row, 2 * i + 1, d.im);
  }
  const double by = i < least ? s->sign[i] * p->by : 0;
  for (int64_t k = zeros * planes; k < n * planes; k++) factor_put(f, row, k, factor_get(f, row, k) * by);
}

/* Rows of a task. */
#define TASK_ROWS 32

static void put_rows(void *arg, int64_t task, int worker) {
  const put_run *p = arg;
  const factor *f = p->f;
  const int64_t m = p->a->length, n = p->a->count, rows = f->spec->full ? m : ts_linalg_min(m, n);
  const int64_t first = task * TASK_ROWS, end = ts_linalg_min(rows, first + TASK_ROWS);
  const ts_linalg_view columns = {factor_at(f, p->a->data, first), 1, m},
                       out = {(char *)f->results[1] + first * n * factor_planes(f) * f->size, n, 1};
  const factor alone = factor_alone(f);
  (void)worker;
  factor_store(&alone, &columns, &out, end - first, n);
  for (int64_t i = first; i < end; i++) put_row(p, i);
}

static void put_r(const factor *f, const factor_lines *a, const factor_steps *s, int power) {
  put_run p = {f, a, s, ldexp(1, -power)};
  const int64_t rows = f->spec->full ? a->length : ts_linalg_min(a->length, a->count);
  ts_parallel_run(rows < 4 * TASK_ROWS ? &ts_parallel_serial : f->parallel, (rows + TASK_ROWS - 1) / TASK_ROWS,
                  put_rows, &p);
}

/* The diagonal of a complex R is that of Nx's reflectors: its phase is opposite to the phase of the reflected
 * element. */
static void reflect_complex_column(const factor *f, char *x, int64_t length, int64_t j, const factor_steps *out) {
  factor_reflect_plainly(f, x, length, j, out);
  out->sign[j] = 1;
}

static ts_status put_q(const factor *f, const factor_lines *a, const factor_lines *q, const factor_steps *s) {
  const int64_t m = a->length, steps = ts_linalg_min(m, a->count);
  TS_TRY(
      factor_product(&(factor_reflections){.f = f, .a = a, .to = q, .tau = s->tau, .room = s->room, .end = s->count}));
  for (int64_t c = 0; c < steps; c++)
    for (int64_t i = 0; s->sign[c] < 0 && i < m; i++)
      factor_set(f, factor_line(f, q, c), i, -factor_get(f, factor_line(f, q, c), i));
  const ts_linalg_view columns = {q->data, 1, m}, out = {f->results[0], q->count, 1};
  factor_store(f, &columns, &out, m, q->count);
  return TS_SUCCESS;
}

ts_status factor_qr(const factor *f) {
  const int64_t m = f->spec->rows, n = f->spec->cols, steps = ts_linalg_min(m, n);
  double *diagonal = (double *)(void *)f->workspace;
  const factor_lines a = {(char *)(diagonal + 3 * steps), n, m};
  const factor_lines q = {factor_line(f, &a, n), f->spec->full ? m : steps, m};
  const factor_steps s = {f->plane && m == n ? steps - 1 : steps,
                          diagonal,
                          diagonal + steps,
                          diagonal + 2 * steps,
                          f->plane ? reflect_complex_column : reflect_column,
                          factor_line(f, &q, q.count)};
  const ts_linalg_view from = {(char *)(uintptr_t)f->matrix, 1, n}, to = {a.data, m, 1};
  const int power = factor_range_power(f, f->most);
  if (steps > 0) s.sign[steps - 1] = 1;
  factor_load(f, &from, &to, n, m);
  factor_scale_by_power(f, a.data, n * m, power);
  TS_TRY(factor_columns(f, &a, &s));
  if (factor_reads(f, 0)) TS_TRY(put_q(f, &a, &q, &s));
  if (factor_reads(f, 1)) put_r(f, &a, &s, power);
  return TS_SUCCESS;
}
