/* Lines of a matrix, their reflectors, sums and products: shared by the factorizations. */
#include "kernel/linalg/factor_internal.h"

#include <math.h>
#include <string.h>

void factor_fill(const factor *f, char *to, int64_t count, double x) {
  if (x == 0)
    memset(to, 0, (size_t)(count * f->size));
  else
    for (int64_t i = 0; i < count; i++) factor_set(f, to, i, x);
}

void factor_clear(const factor *f, char *line, int64_t count) {
  for (int p = 0; p < factor_planes(f); p++) memset(line + p * f->plane, 0, (size_t)(count * f->size));
}

/* The norm, also where squares overflow or underflow. */
static double norm_of(const factor *f, const char *x, int64_t length) {
  const double low = f->size == 4 ? 1e-25 : 1e-280, high = f->size == 4 ? 1e35 : 1e300;
  const double squares = factor_dot(f, x, x, length);
  double most = 0, sum = 0;
  if (squares > low && squares < high) return sqrt(squares);
  for (int p = 0; p < factor_planes(f); p++) most = fmax(most, f->v->largest(x + p * f->plane, length));
  for (int p = 0; p < factor_planes(f); p++)
    for (int64_t i = 0; most > 0 && i < length; i++) {
      const double part = factor_get(f, x + p * f->plane, i) / most;
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

/* Lines of a task. */
#define TASK_LINES 32

/* ---- complex lines: the loops of real ones, on both parts ---- */

typedef struct parts {
  double *re, *im;
} parts;

static parts parts_of(const factor *f, const char *line) {
  double *re = (double *)(uintptr_t)line;
  return (parts){re, (double *)(void *)((char *)re + f->plane)};
}
static factor_number number_at(parts x, int64_t i) { return (factor_number){x.re[i], x.im[i]}; }
static void put_number(parts x, int64_t i, factor_number z) { x.re[i] = z.re, x.im[i] = z.im; }

/* A vector whose norm would have few digits is multiplied by `lift`, 1 for others. */
static factor_number complex_reflector(const factor *f, char *line, int64_t length, double lift, double *out_tau) {
  const parts x = parts_of(f, line);
  const factor_number first = number_at(x, 0), phase = factor_phase(first);
  const double size = factor_size(first), norm = hypot(size, norm_of(f, factor_at(f, line, 1), length - 1));
  *out_tau = 0;
  if (norm == 0) return first;
  if (norm < FACTOR_SHORT && lift == 1) {
    for (int64_t i = 0; i < length; i++) put_number(x, i, factor_scaled(number_at(x, i), FACTOR_LIFT));
    return complex_reflector(f, line, length, FACTOR_LIFT, out_tau);
  }
  const factor_number v0 = factor_scaled(phase, size + norm);
  for (int64_t i = 1; i < length; i++) put_number(x, i, factor_quotient(number_at(x, i), v0));
  put_number(x, 0, (factor_number){1, 0});
  *out_tau = (size + norm) / norm;
  return factor_scaled(phase, -norm / lift);
}

static void complex_sums(const factor *f, const ts_linalg_sums *s, char *lines, int64_t step, int64_t count) {
  const parts to = parts_of(f, lines), from = parts_of(f, s->lines), by = parts_of(f, s->by);
  ts_linalg_sums own = *s, other = *s;
  if (s->count == 1) {
    f->v->add_multiples(s, f->plane / f->size, lines, step, count);
    return;
  }
  f->v->take_sums(&own, to.re, step, count);
  own.lines = from.im;
  f->v->take_sums(&own, to.im, step, count);
  other.by = by.im;
  other.adds = s->adds != s->conjugate;
  f->v->take_sums(&other, to.im, step, count);
  other.lines = from.im;
  other.adds = !other.adds;
  f->v->take_sums(&other, to.re, step, count);
}

/* ---- lines of both kinds, by one thread ---- */

factor_number factor_reflector(const factor *f, char *x, int64_t length, double *out_tau) {
  if (f->plane) return complex_reflector(f, x, length, 1, out_tau);
  const factor_vector v = factor_measure(f, x, length);
  return (factor_number){factor_reflect_vector(f, &v, out_tau), 0};
}

void factor_sum_lines(const factor *f, const ts_linalg_sums *s, char *lines, int64_t step, int64_t count) {
  if (s->count == 0) return;
  if (f->plane)
    complex_sums(f, s, lines, step, count);
  else
    f->v->take_sums(s, lines, step, count);
}

void factor_multiply_lines(const factor *f, const ts_linalg_reflector *v, const char *lines, int64_t step,
                           int64_t count, char *out) {
  if (f->plane)
    f->v->complex_products(v, f->plane / f->size, lines, step, count, out);
  else
    f->v->products(v, lines, step, count, out);
}

void factor_reflect_lines(const factor *f, const ts_linalg_reflector *v, char *lines, int64_t step, int64_t count) {
  if (f->plane)
    f->v->complex_reflect(v, f->plane / f->size, lines, step, count);
  else
    f->v->reflect(v, lines, step, count);
}

double factor_dot(const factor *f, const char *x, const char *y, int64_t count) {
  const double re = f->v->dot(x, y, count);
  return f->plane ? re + f->v->dot(x + f->plane, y + f->plane, count) : re;
}

void factor_scale(const factor *f, char *line, int64_t count, factor_number by) {
  for (int64_t i = 0; i < count; i++) factor_set_number(f, line, i, factor_times(factor_get_number(f, line, i), by));
}

void factor_conjugate_line(const factor *f, char *line, int64_t count) {
  for (int64_t i = 0; f->plane && i < count; i++)
    factor_set_number(f, line, i, factor_conjugate(factor_get_number(f, line, i)));
}

/* With this number of elements several threads take part. */
#define SHARED_ELEMENTS 4096
/* With this number of multiplications several threads compute sums and products of lines. */
#define SHARED_PRODUCTS 262144

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
  factor_sum_lines(t->f, &sums, t->lines + first * t->step * t->f->size, t->step, some);
}

static void products_task(void *arg, int64_t task, int worker) {
  const lines_task *t = arg;
  const int64_t first = task * TASK_LINES, some = ts_linalg_min(TASK_LINES, t->count - first);
  (void)worker;
  factor_multiply_lines(t->f, t->v, t->lines + first * t->step * t->f->size, t->step, some,
                        t->out + first * t->f->size);
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
  factor_sum_lines(t->f, &sums, t->lines + first * t->f->size, t->step, t->count);
}

void factor_take_columns(const factor *f, const ts_linalg_sums *sums, char *lines, int64_t step, int64_t count) {
  const bool shared = sums->length * sums->count >= SHARED_PRODUCTS;
  lines_task t = {.f = f, .sums = sums, .lines = lines, .step = step, .count = count};
  ts_parallel_run(shared ? f->parallel : &ts_parallel_serial, (sums->length + TASK_ELEMENTS - 1) / TASK_ELEMENTS,
                  columns_task, &t);
}

void factor_scale_by_power(const factor *f, char *line, int64_t count, int power) {
  const double by = ldexp(1, power / 2), rest = ldexp(1, power - power / 2);
  for (int p = 0; power != 0 && p < factor_planes(f); p++, line += f->plane)
    for (int64_t i = 0; i < count; i++) factor_set(f, line, i, factor_get(f, line, i) * by * rest);
}

typedef struct copy_task {
  const factor *f;
  const ts_linalg_view *from, *to;
  int64_t rows, cols;
  bool stores; /* rows of a result, whose zeros become +0 */
} copy_task;

static void copy_rows(void *arg, int64_t task, int worker) {
  const copy_task *t = arg;
  const int64_t first = task * TASK_LINES, rows = ts_linalg_min(TASK_LINES, t->rows - first);
  const int size = t->f->size;
  const ts_linalg_view from = {ts_linalg_at(t->from, first, 0, size), t->from->row, t->from->col},
                       to = {ts_linalg_at(t->to, first, 0, size), t->to->row, t->to->col};
  (void)worker;
  ts_linalg_copy(&from, &to, rows, t->cols, size);
  for (int64_t i = 0; t->stores && i < rows; i++) {
    char *row = ts_linalg_at(&to, i, 0, size);
    for (int64_t k = 0; k < t->cols; k++) factor_put(t->f, row, k, factor_get(t->f, row, k));
  }
}

static void copy(const copy_task *t) {
  ts_parallel_run(t->rows * t->cols < SHARED_ELEMENTS ? &ts_parallel_serial : t->f->parallel,
                  (t->rows + TASK_LINES - 1) / TASK_LINES, copy_rows, (void *)(uintptr_t)t);
}

/* Of complex numbers: the parts of each are neighbours in operands and results. */
void factor_load(const factor *f, const ts_linalg_view *from, const ts_linalg_view *to, int64_t rows, int64_t cols) {
  const parts lines = parts_of(f, to->data);
  if (!f->plane) copy(&(copy_task){f, from, to, rows, cols, false});
  for (int64_t i = 0; f->plane && i < rows; i++)
    for (int64_t k = 0; k < cols; k++) {
      const double *x = (const double *)(const void *)from->data + 2 * (i * from->row + k * from->col);
      put_number(lines, i * to->row + k * to->col, (factor_number){x[0], x[1]});
    }
}

void factor_store(const factor *f, const ts_linalg_view *from, const ts_linalg_view *to, int64_t rows, int64_t cols) {
  const parts lines = parts_of(f, from->data);
  if (!f->plane) copy(&(copy_task){f, from, to, rows, cols, true});
  for (int64_t i = 0; f->plane && i < rows; i++)
    for (int64_t k = 0; k < cols; k++) {
      const factor_number z = number_at(lines, i * from->row + k * from->col);
      double *x = (double *)(void *)to->data + 2 * (i * to->row + k * to->col);
      x[0] = z.re + 0, x[1] = z.im + 0;
    }
}

/* ---- results in another order ---- */

static const char *ordered_line(const factor *f, const factor_ordered *o, int64_t c) {
  return factor_line(f, o->lines, c < o->ordered ? o->order[c] : c);
}

static factor_number ordered_sign(const factor *f, const factor_ordered *o, int64_t c) {
  const factor_number sign = c < o->is_signed ? factor_value(f, o->signs, c) : (factor_number){1, 0};
  return o->conjugate ? factor_conjugate(sign) : sign;
}

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

static factor_number sign_of(const factor *f, const char *line, int64_t count) {
  factor_number found = {0, 0};
  double most = 0;
  for (int64_t i = 0; i < count; i++) {
    const factor_number x = factor_get_number(f, line, i);
    const double size = f->plane ? factor_size(x) : fabs(x.re);
    if (size > most) most = size, found = x;
  }
  return f->plane ? factor_phase(found) : (factor_number){found.re < 0 ? -1 : 1, 0};
}

static void signs_task(void *arg, int64_t task, int worker) {
  const ordered_task *t = arg;
  const int64_t end = ts_linalg_min(t->o->is_signed, (task + 1) * TASK_LINES);
  (void)worker;
  for (int64_t c = task * TASK_LINES; c < end; c++)
    factor_set_value(t->f, t->signs, c, sign_of(t->f, ordered_line(t->f, t->o, c), t->o->lines->length));
}

void factor_take_signs(const factor *f, const factor_ordered *o, double *signs) {
  run_ordered(&(ordered_task){.f = f, .o = o, .signs = signs}, signs_task);
}

/* Rows of the result; `count` columns are these lines. */
#define DEFINE_PUT_COLUMNS(T, NAME)                                                       \
  static void NAME(const ordered_task *t, int64_t first, int64_t count) {                 \
    const int64_t cols = t->o->lines->count, length = t->o->lines->length;                \
    const T *lines[TASK_LINES];                                                           \
    T signs[TASK_LINES], *out = (T *)t->out + first;                                      \
    for (int64_t c = 0; c < count; c++) {                                                 \
      lines[c] = (const T *)(const void *)ordered_line(t->f, t->o, first + c);            \
      signs[c] = (T)ordered_sign(t->f, t->o, first + c).re;                               \
    }                                                                                     \
    for (int64_t i = 0; i < length; i++)                                                  \
      for (int64_t c = 0; c < count; c++) out[i * cols + c] = signs[c] * lines[c][i] + 0; \
  }
DEFINE_PUT_COLUMNS(float, put_narrow_columns)
DEFINE_PUT_COLUMNS(double, put_wide_columns)

/* A line, whose numbers become `step` apart. */
static void put_line(const ordered_task *t, int64_t c, int64_t to, int64_t step) {
  const factor *f = t->f;
  const char *line = ordered_line(f, t->o, c);
  const factor_number sign = ordered_sign(f, t->o, c);
  for (int64_t i = 0; f->plane && i < t->o->lines->length; i++) {
    const factor_number z = factor_times(factor_get_number(f, line, i), sign);
    factor_put(f, t->out, 2 * (to + i * step), z.re);
    factor_put(f, t->out, 2 * (to + i * step) + 1, z.im);
  }
  for (int64_t i = 0; !f->plane && i < t->o->lines->length; i++)
    factor_put(f, t->out, to + i * step, sign.re * factor_get(f, line, i));
}

static void put_columns_task(void *arg, int64_t task, int worker) {
  const ordered_task *t = arg;
  const int64_t first = task * TASK_LINES, cols = t->o->lines->count, count = ts_linalg_min(TASK_LINES, cols - first);
  (void)worker;
  if (!t->f->plane) (t->f->size == 4 ? put_narrow_columns : put_wide_columns)(t, first, count);
  for (int64_t c = first; t->f->plane && c < first + count; c++) put_line(t, c, c, cols);
}

void factor_put_columns(const factor *f, const factor_ordered *o, void *out) {
  run_ordered(&(ordered_task){.f = f, .o = o, .out = out}, put_columns_task);
}

static void put_rows_task(void *arg, int64_t task, int worker) {
  const ordered_task *t = arg;
  const int64_t end = ts_linalg_min(t->o->lines->count, (task + 1) * TASK_LINES), length = t->o->lines->length;
  (void)worker;
  for (int64_t c = task * TASK_LINES; c < end; c++) put_line(t, c, c * length, 1);
}

void factor_put_rows(const factor *f, const factor_ordered *o, void *out) {
  run_ordered(&(ordered_task){.f = f, .o = o, .out = out}, put_rows_task);
}
