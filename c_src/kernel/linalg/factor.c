#include "kernel/linalg/factor_complex.h"
#include "kernel/linalg/factor_complex_blocks.h"
#include "kernel/linalg/factor_turns.h"

#include <math.h>

static ts_dtype computed_type(ts_dtype type) {
  return ts_dtype_is_complex(type) ? TS_C128 : ts_dtype_accumulator(type);
}

static bool has_factors(ts_opcode op) { return op == TS_OP_QR || op == TS_OP_SVD; }
static bool wants_finite(ts_opcode op) { return has_factors(op) || op == TS_OP_EIGH; }

static void set_triangular(const ts_op *op, ts_factor_spec *spec) {
  spec->triangular.left = op->attrs->triangular.left;
  spec->triangular.lower = op->attrs->triangular.lower;
  spec->triangular.transpose = op->attrs->triangular.transpose;
  spec->triangular.unit = op->attrs->triangular.unit;
}

ts_factor_spec ts_factor_spec_of(const ts_op *op, ts_dtype type, const ts_shape *first, const ts_shape *last) {
  const int64_t *dims = first->dims + first->rank - 2, *right = last->dims + last->rank - 2;
  ts_factor_spec spec = {.op = op->code, .type = computed_type(type), .rows = dims[0], .cols = dims[1]};
  if (has_factors(op->code)) spec.full = op->attrs->factors.full;
  if (op->code == TS_OP_SOLVE) spec.right = right[1];
  if (op->code == TS_OP_TRIANGULAR_SOLVE) {
    set_triangular(op, &spec);
    spec.right = right[spec.triangular.left ? 1 : 0];
  }
  return spec;
}

int64_t ts_factor_operand_elements(const ts_factor_spec *s, int operand) {
  return s->rows * (operand == 0 ? s->cols : s->right);
}

static int64_t qr_elements(const ts_factor_spec *s, int result) {
  return (result == 0 ? s->rows : s->cols) * (s->full ? s->rows : ts_linalg_min(s->rows, s->cols));
}

static int64_t svd_elements(const ts_factor_spec *s, int result) {
  const int64_t least = ts_linalg_min(s->rows, s->cols);
  if (result == 1) return least;
  return result == 0 ? s->rows * (s->full ? s->rows : least) : s->cols * (s->full ? s->cols : least);
}

int64_t ts_factor_elements(const ts_factor_spec *s, int result) {
  switch ((ts_ops_LINALG)s->op) {
  case TS_OP_QR: return qr_elements(s, result);
  case TS_OP_SVD: return svd_elements(s, result);
  case TS_OP_EIGH: return result == 0 ? s->rows : s->rows * s->rows;
  case TS_OP_DETERMINANT: return 1;
  case TS_OP_SOLVE:
  case TS_OP_TRIANGULAR_SOLVE: return s->rows * s->right;
  case TS_OP_CHOLESKY:
  case TS_OP_LU: return s->rows * s->rows;
  }
  return 0; /* ts_factor_run refuses it */
}

ts_dtype ts_factor_result_type(const ts_factor_spec *s, int result) {
  return s->type == TS_C128 && s->op == TS_OP_SVD && result == 1 ? TS_F64 : s->type;
}

/* Workspace: the matrix, at most two squares of its longer side, one of its shorter side, the right side, a panel with
 * its reflectors, and eight numbers for each line. An element has at most `size` bytes. */
static bool workspace_bytes(const ts_factor_spec *s, int64_t size, int64_t *out) {
  const int64_t most = ts_linalg_max(s->rows, s->cols), least = ts_linalg_min(s->rows, s->cols);
  int64_t lines, bytes;
  if (most > INT64_MAX / 8192) return false;
  const int64_t turns = wants_finite(s->op) ? 2 * factor_turns_bytes(least) + factor_divide_bytes(least) + 10 * 64 : 63;
  return ts_add_i64(s->full ? most : least, 3 * least + 2 * FACTOR_PANEL + 1, &lines) &&
         ts_add_i64(lines, s->right, &lines) && ts_mul_i64(lines, most, &bytes) &&
         ts_add_i64(bytes, 8 * (most + FACTOR_PANEL) + factor_panels_elements(most), &bytes) &&
         ts_mul_i64(bytes, size, &bytes) && ts_add_i64(bytes, turns, out);
}

ts_status ts_factor_workspace(const ts_factor_spec *s, int64_t *out) {
  if (ts_factor_is_small(s)) {
    *out = ts_factor_group_workspace(s, ts_factor_vector(s, 1)) + 64;
    return TS_SUCCESS;
  }
  const bool blocked = ts_factor_is_blocked(s);
  if (blocked ? !factor_grid_bytes(s, out) : !workspace_bytes(s, s->type == TS_C128 ? 16 : 8, out))
    return ts_error(TS_RESOURCE_EXHAUSTED, "%s needs too much workspace", ts_op_name(s->op));
  *out = *out / 64 * 64;
  return TS_SUCCESS;
}

/* ---- large complex matrices ---- */

/* Rows from which on there are blocks, which are faster by then, and right sides of a triangular system: fewer are
 * limited by the time to read the matrix. */
#define BLOCKED_ROWS 48
#define BLOCKED_RIGHT 16

bool ts_factor_is_blocked(const ts_factor_spec *s) {
  if (s->type != TS_C128 || s->rows < BLOCKED_ROWS || has_factors(s->op) || s->op == TS_OP_EIGH) return false;
  return s->op != TS_OP_TRIANGULAR_SOLVE || s->right >= BLOCKED_RIGHT;
}

ts_status ts_factor_products(const ts_factor_spec *s, ts_gemm **out) {
  *out = NULL;
  return ts_factor_is_blocked(s) ? ts_gemm_get(TS_F64, NULL, out) : TS_SUCCESS;
}

/* ---- small matrices ---- */

bool ts_factor_is_small(const ts_factor_spec *s) {
  return s->type != TS_C128 && (has_factors(s->op) || s->op == TS_OP_EIGH) && s->rows > 0 && s->cols > 0 &&
         ts_linalg_max(s->rows, s->cols) <= TS_LINALG_FACTOR_ROWS;
}

/* Vectors of 16 bytes take no longer than single numbers. */
const ts_linalg_vector *ts_factor_vector(const ts_factor_spec *s, int64_t count) {
  const ts_linalg_vector *base = &ts_linalg_vector_base[s->type == TS_F64];
  return count <= base->lanes ? base : ts_linalg_vector_of(s->type);
}

int64_t ts_factor_group_workspace(const ts_factor_spec *s, const ts_linalg_vector *v) {
  const int64_t bytes = ts_linalg_factors_vectors(s->rows, s->cols) * v->lanes * (int64_t)ts_dtype_size(s->type);
  return (bytes + 63) / 64 * 64;
}

void ts_factor_run_group(const ts_factor_spec *s, const ts_linalg_vector *v, int64_t count, const void *matrices,
                         void *const *results, char *workspace) {
  ts_linalg_factors g = {.matrix = matrices,
                         .matrix_step = s->rows * s->cols,
                         .rows = (int)s->rows,
                         .cols = (int)s->cols,
                         .count = (int)count,
                         .full = s->full};
  for (int i = 0; i < ts_op_results(s->op); i++) {
    g.results[i] = results[i];
    g.steps[i] = ts_factor_elements(s, i);
  }
  (s->op == TS_OP_QR ? v->qr_group : s->op == TS_OP_EIGH ? v->eigh_group : v->svd_group)(&g, workspace);
}

/* Numbers are loaded and stored one by one. */
double ts_factor_group_cost(const ts_factor_spec *s, const ts_linalg_vector *v) {
  const double elements = (double)s->rows * (double)s->cols, least = (double)ts_linalg_min(s->rows, s->cols);
  const double each = s->op == TS_OP_QR ? 2 : s->op == TS_OP_EIGH ? 4 : 9;
  return 500 + elements * (1.2 * v->lanes + each * least);
}

/* Times n^3 / 2, of an op in real numbers. */
static double cost_factor(ts_opcode op) {
  switch ((ts_ops_LINALG)op) {
  case TS_OP_EIGH: return 4;
  case TS_OP_SVD: return 12;
  case TS_OP_CHOLESKY: return 0.25;
  case TS_OP_TRIANGULAR_SOLVE: return 0;
  case TS_OP_QR: return 1;
  case TS_OP_SOLVE:
  case TS_OP_DETERMINANT:
  case TS_OP_LU: return 0.5;
  }
  return 0; /* ts_factor_run refuses it */
}

double ts_factor_cost(const ts_factor_spec *s) {
  const double m = (double)s->rows, n = (double)s->cols, least = m < n ? m : n, right = (double)s->right;
  const double elements = m * n, products = cost_factor(s->op) * elements * least + n * n * right;
  if (ts_factor_is_blocked(s)) return 500 + 20 * elements + 0.1 * products;
  return 500 + (20 * elements + 0.5 * products) * (s->type == TS_C128 ? 5 : 1);
}

/* ---- shared by the factorizations ---- */

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

/* ---- one matrix ---- */

static int64_t parts_of(const factor *f, ts_dtype type, int64_t elements) {
  return elements * (int64_t)ts_dtype_size(type) / f->size;
}

static void fill_with_nan(const factor *f) {
  for (int i = 0; i < ts_op_results(f->spec->op); i++)
    factor_fill(f, f->results[i], parts_of(f, ts_factor_result_type(f->spec, i), ts_factor_elements(f->spec, i)),
                (double)NAN);
}

static ts_status unknown(const factor *f) {
  return ts_error(TS_UNIMPLEMENTED, "%s is not implemented for matrices of %s", ts_op_name(f->spec->op),
                  ts_dtype_name(f->spec->type));
}

static ts_status run_real(const factor *f, bool *out_good) {
  switch ((ts_ops_LINALG)f->spec->op) {
  case TS_OP_QR: return factor_qr(f);
  case TS_OP_EIGH: return factor_eigh(f, out_good);
  case TS_OP_SVD: return factor_svd(f, out_good);
  case TS_OP_CHOLESKY: /* they have routines of their own */
  case TS_OP_TRIANGULAR_SOLVE:
  case TS_OP_SOLVE:
  case TS_OP_DETERMINANT:
  case TS_OP_LU: break;
  }
  return unknown(f);
}

static ts_status run_complex(const factor *f, bool *out_good) {
  const bool blocked = ts_factor_is_blocked(f->spec);
  switch ((ts_ops_LINALG)f->spec->op) {
  case TS_OP_QR: return factor_complex_qr(f);
  case TS_OP_EIGH: return factor_complex_eigh(f, out_good);
  case TS_OP_SVD: return factor_complex_svd(f, out_good);
  case TS_OP_CHOLESKY: return (blocked ? factor_blocked_cholesky : factor_complex_cholesky)(f);
  case TS_OP_TRIANGULAR_SOLVE: return (blocked ? factor_blocked_triangular : factor_complex_triangular)(f);
  case TS_OP_SOLVE:
  case TS_OP_DETERMINANT:
  case TS_OP_LU: return (blocked ? factor_blocked_lu : factor_complex_lu)(f);
  }
  return unknown(f);
}

ts_status ts_factor_run(const ts_factor_spec *spec, const void *const *operands, void *const *results, char *workspace,
                        const ts_factor_means *means) {
  const bool is_complex = spec->type == TS_C128;
  const ts_dtype part = is_complex ? TS_F64 : spec->type;
  factor f = {.spec = spec,
              .v = ts_linalg_vector_of(part),
              .size = (int)ts_dtype_size(part),
              .matrix = operands[0],
              .right = spec->right > 0 ? operands[1] : NULL,
              .results = results,
              .workspace = workspace,
              .products = means->products,
              .pool = means->pool,
              .parallel = means->parallel,
              .cancel = means->cancel};
  if (ts_factor_is_small(spec)) {
    char *aligned = workspace + (64 - (uintptr_t)workspace % 64) % 64;
    TS_TRY(ts_check_cancelled(f.cancel, ts_op_name(spec->op)));
    ts_factor_run_group(spec, ts_factor_vector(spec, 1), 1, operands[0], results, aligned);
    return TS_SUCCESS;
  }
  if (wants_finite(spec->op)) f.most = f.v->largest(f.matrix, parts_of(&f, spec->type, spec->rows * spec->cols));
  bool good = isfinite(f.most);
  TS_TRY(ts_check_cancelled(f.cancel, ts_op_name(spec->op)));
  if (good) TS_TRY(is_complex ? run_complex(&f, &good) : run_real(&f, &good));
  if (!good) fill_with_nan(&f);
  return TS_SUCCESS;
}
