/* Lines of a matrix, their reflectors, sums and products: shared by the factorizations. */
#include "kernel/linalg/factor_internal.h"

#include <math.h>
#include <string.h>

bool factor_is_turned(const factor *f, const char *line, int64_t count) {
  double most = 0, found = 0;
  for (int64_t i = 0; i < count; i++) {
    const double x = factor_get(f, line, i);
    if (fabs(x) > most) most = fabs(x), found = x;
  }
  return found < 0;
}

void factor_fill(const factor *f, char *line, int64_t count, double x) {
  if (x == 0)
    memset(line, 0, (size_t)(count * f->size));
  else
    for (int64_t i = 0; i < count; i++) factor_set(f, line, i, x);
}

/* The norm, also where squares overflow or underflow. */
static double norm_of(const factor *f, const char *x, int64_t length) {
  const double low = f->size == 4 ? 1e-25 : 1e-280, high = f->size == 4 ? 1e35 : 1e300;
  const double squares = f->v->dot(x, x, length);
  if (squares > low && squares < high) return sqrt(squares);
  const double most = f->v->largest(x, length);
  double sum = 0;
  for (int64_t i = 0; most > 0 && i < length; i++) {
    const double part = factor_get(f, x, i) / most;
    sum += part * part;
  }
  return most * sqrt(sum);
}

/* 2^RANGE of either type squared, times a matrix's elements, is far from the ends of its range. */
#define NARROW_RANGE 40
#define WIDE_RANGE 400

int factor_range_power(const factor *f, double most) {
  const int range = f->size == 4 ? NARROW_RANGE : WIDE_RANGE;
  int exponent = 0;
  if (most > 0) (void)frexp(most, &exponent);
  return exponent > range ? range - exponent : exponent < -range ? -range - exponent : 0;
}

factor_vector factor_measure(const factor *f, char *x, int64_t length) {
  factor_vector v = {x, length, factor_get(f, x, 0), norm_of(f, factor_at(f, x, 1), length - 1), 0};
  if (fabs(v.first) + v.below >= FACTOR_SHORT || v.below == 0) return v;
  (void)frexp(f->v->largest(x, length), &v.power);
  v.power = -v.power;
  factor_scale_by_power(f, x, length, v.power);
  v.first = factor_get(f, x, 0);
  v.below = norm_of(f, factor_at(f, x, 1), length - 1);
  return v;
}

double factor_reflect_vector(const factor *f, const factor_vector *v, double *out_tau) {
  *out_tau = 0;
  if (v->below == 0) return v->first;
  const double norm = hypot(v->first, v->below), target = v->first > 0 ? -norm : norm, v0 = v->first - target;
  for (int64_t i = 1; i < v->length; i++) factor_set(f, v->x, i, factor_get(f, v->x, i) / v0);
  factor_set(f, v->x, 0, 1);
  *out_tau = -v0 / target;
  return ldexp(target, -v->power);
}

double factor_reflector(const factor *f, char *x, int64_t length, double *out_tau) {
  const factor_vector v = factor_measure(f, x, length);
  return factor_reflect_vector(f, &v, out_tau);
}

/* Lines of a task. */
#define TASK_LINES 32
/* Elements from which on several threads take part. */
#define SHARED_ELEMENTS 4096
/* Multiplications from which on sums and products of lines are. */
#define SHARED_PRODUCTS 262144

/* Lines of the panel get each reflector at once; later lines get all of them after the panel. */
ts_status factor_columns(const factor *f, const factor_lines *a, const factor_steps *s) {
  for (int64_t first = 0; first < s->count; first += FACTOR_PANEL) {
    const int64_t end = ts_linalg_min(s->count, first + FACTOR_PANEL),
                  own = ts_linalg_min(a->count, first + FACTOR_PANEL);
    for (int64_t j = first; j < end; j++) {
      char *x = factor_at(f, factor_line(f, a, j), j);
      TS_TRY(ts_check_cancelled(f->cancel, ts_op_name(f->spec->op)));
      s->make(f, x, a->length - j, j, s);
      const ts_linalg_reflector v = {x, a->length - j, s->tau[j]};
      f->v->reflect(&v, factor_at(f, x, a->length), a->length, own - j - 1);
    }
    TS_TRY(factor_reflect(&(factor_reflections){f, a, a, s->tau, s->room, 0, first, end, own, false, false}));
  }
  return TS_SUCCESS;
}

void factor_reflect_plainly(const factor *f, char *x, int64_t length, int64_t j, const factor_steps *s) {
  s->diagonal[j] = factor_reflector(f, x, length, &s->tau[j]);
}

ts_status factor_product(const factor_reflections *r) {
  const factor_lines *q = r->to;
  factor_reflections all = *r;
  all.backwards = all.fills = true;
  factor_fill(r->f, q->data, q->count * q->length, 0);
  for (int64_t c = 0; c < q->count; c++) factor_set(r->f, factor_line(r->f, q, c), c, 1);
  return factor_reflect(&all);
}

/* ---- sums and products of many lines, by many threads ---- */

typedef struct lines_task {
  const factor *f;
  const ts_linalg_sums *sums;
  const ts_linalg_reflector *v;
  char *lines, *out;
  int64_t step, count;
} lines_task;

static void sums_task(void *arg, int64_t task, int worker) {
  const lines_task *t = arg;
  const int64_t first = task * TASK_LINES, some = ts_linalg_min(TASK_LINES, t->count - first);
  ts_linalg_sums sums = *t->sums;
  (void)worker;
  sums.by = (const char *)sums.by + first * t->f->size;
  t->f->v->take_sums(&sums, t->lines + first * t->step * t->f->size, t->step, some);
}

static void products_task(void *arg, int64_t task, int worker) {
  const lines_task *t = arg;
  const int64_t first = task * TASK_LINES, some = ts_linalg_min(TASK_LINES, t->count - first);
  (void)worker;
  t->f->v->products(t->v, t->lines + first * t->step * t->f->size, t->step, some, t->out + first * t->f->size);
}

static void run_lines(lines_task *t, int64_t length, ts_task_fn fn) {
  const bool shared = t->count * length >= SHARED_PRODUCTS;
  ts_parallel_run(shared ? t->f->parallel : &ts_parallel_serial, (t->count + TASK_LINES - 1) / TASK_LINES, fn, t);
}

void factor_take_sums(const factor *f, const ts_linalg_sums *sums, char *lines, int64_t step, int64_t count) {
  lines_task t = {.f = f, .sums = sums, .lines = lines, .step = step, .count = count};
  run_lines(&t, sums->length * sums->count, sums_task);
}

void factor_products(const factor *f, const ts_linalg_reflector *v, const char *lines, int64_t step, int64_t count,
                     char *out) {
  lines_task t = {.f = f, .v = v, .lines = (char *)(uintptr_t)lines, .out = out, .step = step, .count = count};
  run_lines(&t, v->length, products_task);
}

/* Elements of a line that are a task. */
#define TASK_ELEMENTS 128

static void columns_task(void *arg, int64_t task, int worker) {
  const lines_task *t = arg;
  const int64_t first = task * TASK_ELEMENTS;
  ts_linalg_sums sums = *t->sums;
  (void)worker;
  sums.lines = (const char *)sums.lines + first * t->f->size;
  sums.length = ts_linalg_min(TASK_ELEMENTS, sums.length - first);
  t->f->v->take_sums(&sums, t->lines + first * t->f->size, t->step, t->count);
}

void factor_take_columns(const factor *f, const ts_linalg_sums *sums, char *lines, int64_t step, int64_t count) {
  const bool shared = sums->length * sums->count >= SHARED_PRODUCTS;
  lines_task t = {.f = f, .sums = sums, .lines = lines, .step = step, .count = count};
  ts_parallel_run(shared ? f->parallel : &ts_parallel_serial, (sums->length + TASK_ELEMENTS - 1) / TASK_ELEMENTS,
                  columns_task, &t);
}

void factor_scale_by_power(const factor *f, char *line, int64_t count, int power) {
  const double by = ldexp(1, power / 2), rest = ldexp(1, power - power / 2);
  for (int64_t i = 0; power != 0 && i < count; i++) factor_set(f, line, i, factor_get(f, line, i) * by * rest);
}

typedef struct copy_task {
  const factor *f;
  const ts_linalg_view *from, *to;
  int64_t rows, cols;
} copy_task;

static void copy_rows(void *arg, int64_t task, int worker) {
  const copy_task *t = arg;
  const int64_t first = task * TASK_LINES, rows = ts_linalg_min(TASK_LINES, t->rows - first);
  const int size = t->f->size;
  const ts_linalg_view from = {ts_linalg_at(t->from, first, 0, size), t->from->row, t->from->col},
                       to = {ts_linalg_at(t->to, first, 0, size), t->to->row, t->to->col};
  (void)worker;
  ts_linalg_copy(&from, &to, rows, t->cols, size);
}

void factor_copy(const factor *f, const ts_linalg_view *from, const ts_linalg_view *to, int64_t rows, int64_t cols) {
  copy_task t = {f, from, to, rows, cols};
  ts_parallel_run(rows * cols < SHARED_ELEMENTS ? &ts_parallel_serial : f->parallel,
                  (rows + TASK_LINES - 1) / TASK_LINES, copy_rows, &t);
}

/* ---- results in another order ---- */

static const char *ordered_line(const factor *f, const factor_ordered *o, int64_t c) {
  return factor_line(f, o->lines, c < o->ordered ? o->order[c] : c);
}

static double ordered_sign(const factor_ordered *o, int64_t c) { return c < o->is_signed ? o->signs[c] : 1; }

typedef struct ordered_task {
  const factor *f;
  const factor_ordered *o;
  double *signs;
  void *out;
} ordered_task;

static void run_ordered(ordered_task *t, ts_task_fn fn) {
  const factor_lines *l = t->o->lines;
  ts_parallel_run(l->count * l->length < SHARED_ELEMENTS ? &ts_parallel_serial : t->f->parallel,
                  (l->count + TASK_LINES - 1) / TASK_LINES, fn, t);
}

static void signs_task(void *arg, int64_t task, int worker) {
  const ordered_task *t = arg;
  const int64_t end = ts_linalg_min(t->o->is_signed, (task + 1) * TASK_LINES);
  (void)worker;
  for (int64_t c = task * TASK_LINES; c < end; c++)
    t->signs[c] = factor_is_turned(t->f, ordered_line(t->f, t->o, c), t->o->lines->length) ? -1 : 1;
}

void factor_take_signs(const factor *f, const factor_ordered *o, double *signs) {
  run_ordered(&(ordered_task){.f = f, .o = o, .signs = signs}, signs_task);
}

/* Rows of the result, of which `count` columns are these lines. */
#define DEFINE_PUT_COLUMNS(T, NAME)                                                   \
  static void NAME(const ordered_task *t, int64_t first, int64_t count) {             \
    const int64_t cols = t->o->lines->count, length = t->o->lines->length;            \
    const T *lines[TASK_LINES];                                                       \
    T signs[TASK_LINES], *out = (T *)t->out + first;                                  \
    for (int64_t c = 0; c < count; c++) {                                             \
      lines[c] = (const T *)(const void *)ordered_line(t->f, t->o, first + c);        \
      signs[c] = (T)ordered_sign(t->o, first + c);                                    \
    }                                                                                 \
    for (int64_t i = 0; i < length; i++)                                              \
      for (int64_t c = 0; c < count; c++) out[i * cols + c] = signs[c] * lines[c][i]; \
  }
DEFINE_PUT_COLUMNS(float, put_narrow_columns)
DEFINE_PUT_COLUMNS(double, put_wide_columns)

static void put_columns_task(void *arg, int64_t task, int worker) {
  const ordered_task *t = arg;
  const int64_t first = task * TASK_LINES, count = ts_linalg_min(TASK_LINES, t->o->lines->count - first);
  (void)worker;
  (t->f->size == 4 ? put_narrow_columns : put_wide_columns)(t, first, count);
}

void factor_put_columns(const factor *f, const factor_ordered *o, void *out) {
  run_ordered(&(ordered_task){.f = f, .o = o, .out = out}, put_columns_task);
}

static void put_rows_task(void *arg, int64_t task, int worker) {
  const ordered_task *t = arg;
  const factor *f = t->f;
  const int64_t end = ts_linalg_min(t->o->lines->count, (task + 1) * TASK_LINES), length = t->o->lines->length;
  (void)worker;
  for (int64_t c = task * TASK_LINES; c < end; c++) {
    const char *line = ordered_line(f, t->o, c);
    char *to = (char *)t->out + c * length * f->size;
    const double sign = ordered_sign(t->o, c);
    for (int64_t i = 0; i < length; i++) factor_set(f, to, i, sign * factor_get(f, line, i));
  }
}

void factor_put_rows(const factor *f, const factor_ordered *o, void *out) {
  run_ordered(&(ordered_task){.f = f, .o = o, .out = out}, put_rows_task);
}
