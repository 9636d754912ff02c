#include "kernel/linalg/factor_complex.h"

#include <string.h>

bool factor_is_far(factor_number z) {
  return isfinite(z.re) && isfinite(z.im) && factor_is_far_size(factor_larger_part(z));
}

static factor_number far_quotient(factor_number x, factor_number y) {
  const double by = factor_lift(factor_larger_part(y));
  if (by > 1 && factor_larger_part(x) < 1) return factor_quotient(factor_scaled(x, by), factor_scaled(y, by));
  return factor_scaled(factor_quotient(x, factor_scaled(y, by)), by);
}

factor_number factor_quotient(factor_number x, factor_number y) {
  const bool swap = fabs(y.im) > fabs(y.re);
  const double large = swap ? y.im : y.re, small = swap ? y.re : y.im;
  const double first = swap ? x.im : x.re, second = swap ? x.re : x.im;
  if (factor_is_zero(y)) return (factor_number){x.re / fabs(y.re), x.im / fabs(y.re)};
  if (factor_is_far(y)) return far_quotient(x, y);
  const double ratio = small / large, divisor = large + small * ratio;
  const double im = (second - first * ratio) / divisor;
  return (factor_number){(first + second * ratio) / divisor, swap ? -im : im};
}

static factor_number raised(factor_number z, int64_t power) {
  return (factor_number){ts_linalg_raised(z.re, power), ts_linalg_raised(z.im, power)};
}

/* The number without the power of two of its larger part. */
static factor_number part_of(factor_number z, int64_t *power) {
  int64_t own = 0;
  if (!isfinite(z.re) || !isfinite(z.im)) return z;
  (void)ts_linalg_part(factor_larger_part(z), &own);
  *power += own;
  return raised(z, -own);
}

void factor_multiply(factor_far_number *product, factor_number x) {
  const factor_number part = part_of(x, &product->power);
  product->part = part_of(factor_times(product->part, part), &product->power);
}

factor_number factor_far_value(const factor_far_number *x) { return raised(x->part, x->power); }

/* ---- lines ---- */

void factor_load(const factor_view *from, const factor_rows *to, int64_t rows, int64_t cols) {
  for (int64_t i = 0; i < rows; i++)
    for (int64_t k = 0; k < cols; k++) factor_put_number(factor_row(to, i), k, factor_view_at(from, i, k));
}

void factor_store(const factor_rows *from, const factor_view *to, int64_t rows, int64_t cols) {
  for (int64_t i = 0; i < rows; i++)
    for (int64_t k = 0; k < cols; k++) factor_view_put(to, i, k, factor_number_at(factor_row(from, i), k));
}

factor_number factor_inner(const factor *f, factor_numbers x, factor_numbers y, int64_t count) {
  return (factor_number){f->v->dot(x.re, y.re, count) + f->v->dot(x.im, y.im, count),
                         f->v->dot(x.re, y.im, count) - f->v->dot(x.im, y.re, count)};
}

factor_number factor_product_sum(const factor *f, factor_numbers x, factor_numbers y, int64_t count) {
  return (factor_number){f->v->dot(x.re, y.re, count) - f->v->dot(x.im, y.im, count),
                         f->v->dot(x.re, y.im, count) + f->v->dot(x.im, y.re, count)};
}

void factor_add_scaled(const factor *f, factor_numbers y, factor_number a, factor_numbers x, int64_t count) {
  f->v->add_scaled(y.re, a.re, x.re, count);
  f->v->add_scaled(y.im, a.re, x.im, count);
  f->v->add_scaled(y.re, -a.im, x.im, count);
  f->v->add_scaled(y.im, a.im, x.re, count);
}

void factor_scale(factor_numbers x, factor_number a, int64_t count) {
  for (int64_t i = 0; i < count; i++) factor_put_number(x, i, factor_times(factor_number_at(x, i), a));
}

double factor_square(const factor *f, factor_numbers x, int64_t count) {
  return f->v->dot(x.re, x.re, count) + f->v->dot(x.im, x.im, count);
}

factor_number factor_largest_phase(factor_numbers x, int64_t count) {
  factor_number found = {0, 0};
  double most = 0;
  for (int64_t i = 0; i < count; i++) {
    const double size = factor_size(factor_number_at(x, i));
    if (size > most) most = size, found = factor_number_at(x, i);
  }
  return factor_phase(found);
}

/* ---- reflectors ---- */

/* Also where squares overflow or underflow. */
static double norm_of(const factor *f, factor_numbers x, int64_t count) {
  const double squares = factor_square(f, x, count);
  double most = 0, sum = 0;
  if (squares > 1e-280 && squares < 1e300) return sqrt(squares);
  for (int64_t i = 0; i < count; i++) most = fmax(most, factor_size(factor_number_at(x, i)));
  for (int64_t i = 0; most > 0 && i < count; i++) {
    const double part = factor_size(factor_number_at(x, i)) / most;
    sum += part * part;
  }
  return most * sqrt(sum);
}

/* Of a vector whose norm would have few digits; it becomes longer. */
static factor_number reflector_of_short(const factor *f, factor_numbers x, int64_t length, double *out_tau) {
  for (int64_t i = 0; i < length; i++) factor_put_number(x, i, factor_scaled(factor_number_at(x, i), FACTOR_LIFT));
  return factor_scaled(factor_complex_reflector(f, x, length, out_tau), 1 / FACTOR_LIFT);
}

factor_number factor_complex_reflector(const factor *f, factor_numbers x, int64_t length, double *out_tau) {
  const factor_number first = factor_number_at(x, 0), phase = factor_phase(first);
  const double size = factor_size(first), norm = hypot(size, norm_of(f, factor_from(x, 1), length - 1));
  *out_tau = 0;
  if (norm == 0) return first;
  if (norm < FACTOR_SHORT) return reflector_of_short(f, x, length, out_tau);
  const factor_number v0 = {phase.re * (size + norm), phase.im * (size + norm)};
  for (int64_t i = 1; i < length; i++) factor_put_number(x, i, factor_quotient(factor_number_at(x, i), v0));
  factor_put_number(x, 0, (factor_number){1, 0});
  *out_tau = (size + norm) / norm;
  return (factor_number){-phase.re * norm, -phase.im * norm};
}

/* Lines that are reflected at once. */
#define TOGETHER 8

/* The numbers -tau v^H x of lines x, which are `step` elements long, as pairs. */
static void products_of(const factor *f, const factor_reflection *r, const double *lines, int64_t step, int64_t count,
                        double *out) {
  double re[2 * TOGETHER], im[2 * TOGETHER];
  f->v->products(&(ts_linalg_reflector){r->v.re, r->length, r->tau}, lines, step, 2 * count, re);
  f->v->products(&(ts_linalg_reflector){r->v.im, r->length, r->tau}, lines, step, 2 * count, im);
  for (int64_t i = 0; i < 2 * count; i += 2) {
    out[i] = re[i] + im[i + 1];
    out[i + 1] = re[i + 1] - im[i];
  }
}

/* Adds these multiples of v to lines. */
static void add_multiples(const factor *f, const factor_reflection *r, const double *numbers, double *lines,
                          int64_t step, int64_t count) {
  double by[4 * TOGETHER];
  for (int64_t i = 0; i < 2 * count; i += 2) {
    by[i] = by[2 * TOGETHER + i + 1] = -numbers[i];
    by[i + 1] = -numbers[i + 1];
    by[2 * TOGETHER + i] = numbers[i + 1];
  }
  const ts_linalg_sums sums = {r->v.re, by, r->v.im - r->v.re, (int64_t)2 * TOGETHER, 2, r->length};
  f->v->take_sums(&sums, lines, step, 2 * count);
}

/* Of lines `line` to `end` - 1, from element `at` on. */
static void reflect_lines(const factor *f, const factor_reflection *r, const factor_rows *to, int64_t at, int64_t line,
                          int64_t end) {
  double numbers[2 * TOGETHER];
  if (r->tau == 0) return;
  for (; line < end; line += TOGETHER) {
    const int64_t count = ts_linalg_min(TOGETHER, end - line);
    double *lines = factor_row(to, line).re + at;
    products_of(f, r, lines, to->length, count, numbers);
    add_multiples(f, r, numbers, lines, to->length, count);
  }
}

/* ---- by many threads: each line gets all reflectors in order, so its bits are the same by any number ---- */

/* Reflectors that are applied to some lines while they are in cache, lines of a task, and elements from which on
 * several threads apply them. */
#define PANEL 16
#define TASK_LINES 16
#define SHARED_ELEMENTS 2048

typedef struct reflections {
  const factor *f;
  const factor_rows *a, *to;
  const double *tau;
  int64_t offset, first, end; /* reflectors: first .. end - 1 */
  int64_t from;               /* the first line of `to` */
  bool backwards;             /* from the last reflector on, each from the line on at which it begins */
} reflections;

static void reflect(const reflections *r, int64_t j, int64_t line, int64_t end) {
  const int64_t at = j + r->offset;
  const factor_reflection v = {factor_from(factor_row(r->a, j), at), r->to->length - at, r->tau[j]};
  reflect_lines(r->f, &v, r->to, at, r->backwards ? ts_linalg_max(line, at) : line, end);
}

static void reflect_task(void *arg, int64_t task, int worker) {
  const reflections *r = arg;
  const int64_t from = r->from + task * TASK_LINES, last = ts_linalg_min(r->to->count, from + TASK_LINES);
  (void)worker;
  for (int64_t first = r->first; first < r->end && !ts_cancelled(r->f->cancel); first += PANEL)
    for (int64_t line = from; line < last; line += TOGETHER)
      for (int64_t j = first; j < ts_linalg_min(r->end, first + PANEL); j++)
        reflect(r, r->backwards ? r->first + r->end - 1 - j : j, line, ts_linalg_min(last, line + TOGETHER));
}

static ts_status run_reflections(reflections *r) {
  const int64_t lines = r->to->count - r->from;
  const bool shared = lines * r->to->length >= SHARED_ELEMENTS;
  if (lines > 0)
    ts_parallel_run(shared ? r->f->parallel : &ts_parallel_serial, (lines + TASK_LINES - 1) / TASK_LINES, reflect_task,
                    r);
  return ts_check_cancelled(r->f->cancel, ts_op_name(r->f->spec->op));
}

ts_status factor_complex_columns(const factor *f, const factor_rows *a, int64_t steps, factor_numbers diagonal,
                                 double *tau) {
  for (int64_t first = 0; first < steps; first += PANEL) {
    const int64_t end = ts_linalg_min(steps, first + PANEL), behind = ts_linalg_min(a->count, first + PANEL);
    reflections r = {.f = f, .a = a, .to = a, .tau = tau, .first = first, .end = end, .from = behind};
    for (int64_t j = first; j < end; j++) {
      const factor_numbers v = factor_from(factor_row(a, j), j);
      TS_TRY(ts_check_cancelled(f->cancel, ts_op_name(f->spec->op)));
      factor_put_number(diagonal, j, factor_complex_reflector(f, v, a->length - j, &tau[j]));
      reflect(&r, j, j + 1, behind);
    }
    TS_TRY(run_reflections(&r));
  }
  return TS_SUCCESS;
}

ts_status factor_complex_product(const factor *f, const factor_rows *a, int64_t offset, int64_t steps,
                                 const double *tau, const factor_rows *q) {
  reflections r = {.f = f, .a = a, .to = q, .tau = tau, .offset = offset, .end = steps, .backwards = true};
  memset(q->data, 0, (size_t)(q->count * 2 * q->length) * sizeof *q->data);
  for (int64_t c = 0; c < q->count; c++) factor_row(q, c).re[c] = 1;
  return run_reflections(&r);
}

/* ---- products and sums of many lines ---- */

#define SHARED_PRODUCTS 49152

typedef struct lines_task {
  const factor *f;
  const factor_reflection *r;
  const factor_rows *rows;
  int64_t at; /* the first element, and the first line but of a reflection */
  double *numbers;
  int64_t line;
} lines_task;

static void products_task(void *arg, int64_t task, int worker) {
  const lines_task *t = arg;
  const int64_t line = t->at + task * TOGETHER, count = ts_linalg_min(TOGETHER, t->rows->count - line);
  (void)worker;
  products_of(t->f, t->r, factor_row(t->rows, line).re + t->at, t->rows->length, count,
              t->numbers + 2 * (line - t->at));
}

static void add_task(void *arg, int64_t task, int worker) {
  const lines_task *t = arg;
  const int64_t line = t->at + task * TOGETHER, count = ts_linalg_min(TOGETHER, t->rows->count - line);
  const double *numbers = t->numbers + 2 * (line - t->at);
  (void)worker;
  add_multiples(t->f, t->r, numbers, factor_row(t->rows, line).re + t->at, t->rows->length, count);
}

static void reflect_lines_task(void *arg, int64_t task, int worker) {
  const lines_task *t = arg;
  const int64_t line = t->line + task * TOGETHER;
  (void)worker;
  reflect_lines(t->f, t->r, t->rows, t->at, line, ts_linalg_min(t->rows->count, line + TOGETHER));
}

static void run_lines(lines_task *t, ts_task_fn fn) {
  const int64_t lines = t->rows->count - t->line;
  ts_parallel_run(lines * t->r->length >= SHARED_PRODUCTS ? t->f->parallel : &ts_parallel_serial,
                  (lines + TOGETHER - 1) / TOGETHER, fn, t);
}

void factor_complex_products(const factor *f, const factor_reflection *r, const factor_rows *rows, int64_t at,
                             double *out) {
  run_lines(&(lines_task){f, r, rows, at, out, at}, products_task);
}

void factor_complex_add(const factor *f, const factor_reflection *r, double *numbers, const factor_rows *rows,
                        int64_t at) {
  run_lines(&(lines_task){f, r, rows, at, numbers, at}, add_task);
}

void factor_complex_reflect(const factor *f, const factor_reflection *r, const factor_rows *rows, int64_t line,
                            int64_t at) {
  run_lines(&(lines_task){f, r, rows, at, NULL, line}, reflect_lines_task);
}
