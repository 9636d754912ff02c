#include "kernel/factor_internal.h"

#include <math.h>

ts_factor_spec ts_factor_spec_of(const ts_op *op, ts_dtype type, const ts_shape *shape) {
  return (ts_factor_spec){.op = op->code,
                          .type = ts_dtype_accumulator(type),
                          .rows = shape->dims[shape->rank - 2],
                          .cols = shape->dims[shape->rank - 1],
                          .full = op->code != TS_OP_EIGH && op->attrs->factors.full};
}

int64_t ts_factor_elements(const ts_factor_spec *s, int result) {
  const int64_t least = ts_linalg_min(s->rows, s->cols);
  if (s->op == TS_OP_EIGH) return result == 0 ? s->rows : s->rows * s->rows;
  if (result == 0) return s->rows * (s->full ? s->rows : least);
  if (s->op == TS_OP_SVD && result == 1) return least;
  return s->cols * (s->op == TS_OP_SVD && s->full ? s->cols : s->op == TS_OP_QR && s->full ? s->rows : least);
}

/* A matrix, up to two that are as large as its longer side is square, and eight numbers for each line. */
ts_status ts_factor_workspace(const ts_factor_spec *s, int64_t *out) {
  const int64_t most = ts_linalg_max(s->rows, s->cols), least = ts_linalg_min(s->rows, s->cols);
  int64_t lines, elements, bytes;
  if (ts_add_i64(s->full ? most : least, 2 * least + 1, &lines) && ts_mul_i64(lines, most, &elements) &&
      ts_add_i64(elements, 8 * (most + 8), &elements) && ts_mul_i64(elements, 8, &bytes) &&
      ts_add_i64(bytes, 63, &bytes)) {
    *out = bytes / 64 * 64;
    return TS_SUCCESS;
  }
  return ts_error(TS_RESOURCE_EXHAUSTED, "%s needs too much workspace", ts_op_name(s->op));
}

double ts_factor_cost(const ts_factor_spec *s) {
  const double m = (double)s->rows, n = (double)s->cols, least = m < n ? m : n;
  const double each = s->op == TS_OP_QR ? 1 : s->op == TS_OP_EIGH ? 4 : 12;
  return 500 + 20 * m * n + each * m * n * least * 0.5;
}

/* ---- what the factorizations share ---- */

bool factor_is_turned(const factor *f, const char *line, int64_t count) {
  double most = 0, found = 0;
  for (int64_t i = 0; i < count; i++) {
    const double x = factor_get(f, line, i);
    if (fabs(x) > most) most = fabs(x), found = x;
  }
  return found < 0;
}

void factor_fill(const factor *f, char *line, int64_t count, double x) {
  for (int64_t i = 0; i < count; i++) factor_set(f, line, i, x);
}

/* The norm, also where squares overflow or underflow. */
static double norm_of(const factor *f, const char *x, int64_t length) {
  const double low = f->size == 4 ? 1e-25 : 1e-280, high = f->size == 4 ? 1e35 : 1e300;
  const double squares = f->v->dot(x, x, length);
  double most = 0, sum = 0;
  if (squares > low && squares < high) return sqrt(squares);
  for (int64_t i = 0; i < length; i++) most = fmax(most, fabs(factor_get(f, x, i)));
  for (int64_t i = 0; most > 0 && i < length; i++) {
    const double part = factor_get(f, x, i) / most;
    sum += part * part;
  }
  return most * sqrt(sum);
}

double factor_reflector(const factor *f, char *x, int64_t length, double *out_tau) {
  const double first = factor_get(f, x, 0), below = norm_of(f, factor_at(f, x, 1), length - 1);
  *out_tau = 0;
  if (below == 0) return first;
  const double norm = hypot(first, below), target = first > 0 ? -norm : norm, v0 = first - target;
  for (int64_t i = 1; i < length; i++) factor_set(f, x, i, factor_get(f, x, i) / v0);
  factor_set(f, x, 0, 1);
  *out_tau = -v0 / target;
  return target;
}

void factor_reflect(const factor *f, char *line, const char *v, int64_t length, double tau) {
  if (tau != 0) f->v->add_scaled(line, -tau * f->v->dot(v, line, length), v, length);
}

ts_status factor_columns(const factor *f, const factor_lines *a, int64_t steps, double *diagonal, double *tau) {
  for (int64_t j = 0; j < steps; j++) {
    char *v = factor_at(f, factor_line(f, a, j), j);
    TS_TRY(ts_check_cancelled(f->cancel, ts_op_name(f->spec->op)));
    diagonal[j] = factor_reflector(f, v, a->length - j, &tau[j]);
    for (int64_t c = j + 1; c < a->count; c++)
      factor_reflect(f, factor_at(f, factor_line(f, a, c), j), v, a->length - j, tau[j]);
  }
  return TS_SUCCESS;
}

ts_status factor_product(const factor *f, const factor_lines *a, int64_t offset, int64_t steps, const double *tau,
                         const factor_lines *q) {
  factor_fill(f, q->data, q->count * q->length, 0);
  for (int64_t c = 0; c < q->count; c++) factor_set(f, factor_line(f, q, c), c, 1);
  for (int64_t j = steps - 1; j >= 0; j--) {
    const int64_t at = j + offset;
    const char *v = factor_at(f, factor_line(f, a, j), at);
    TS_TRY(ts_check_cancelled(f->cancel, ts_op_name(f->spec->op)));
    for (int64_t c = at; c < q->count; c++)
      factor_reflect(f, factor_at(f, factor_line(f, q, c), at), v, q->length - at, tau[j]);
  }
  return TS_SUCCESS;
}

/* ---- one matrix ---- */

static bool is_finite(const factor *f) {
  const int64_t count = f->spec->rows * f->spec->cols;
  bool finite = true;
  for (int64_t i = 0; i < count; i++) finite &= isfinite(factor_get(f, f->matrix, i)) != 0;
  return finite;
}

static void fill_with_nan(const factor *f) {
  for (int i = 0; i < ts_op_results(f->spec->op); i++)
    factor_fill(f, f->results[i], ts_factor_elements(f->spec, i), (double)NAN);
}

ts_status ts_factor_run(const ts_factor_spec *spec, const void *matrix, void *const *results, char *workspace,
                        const _Atomic bool *cancel) {
  const factor f = {.spec = spec,
                    .v = ts_linalg_vector_of(spec->type),
                    .size = (int)ts_dtype_size(spec->type),
                    .matrix = matrix,
                    .results = results,
                    .workspace = workspace,
                    .cancel = cancel};
  bool good = is_finite(&f);
  TS_TRY(ts_check_cancelled(cancel, ts_op_name(spec->op)));
  if (good && spec->op == TS_OP_QR) TS_TRY(factor_qr(&f));
  if (good && spec->op == TS_OP_EIGH) TS_TRY(factor_eigh(&f, &good));
  if (good && spec->op == TS_OP_SVD) TS_TRY(factor_svd(&f, &good));
  if (!good) fill_with_nan(&f);
  return TS_SUCCESS;
}
