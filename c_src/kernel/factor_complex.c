#include "kernel/factor_complex.h"

#include <string.h>

factor_number factor_quotient(factor_number x, factor_number y) {
  const bool swap = fabs(y.im) > fabs(y.re);
  const double large = swap ? y.im : y.re, small = swap ? y.re : y.im;
  const double first = swap ? x.im : x.re, second = swap ? x.re : x.im;
  if (factor_is_zero(y)) return (factor_number){x.re / fabs(y.re), x.im / fabs(y.re)};
  const double ratio = small / large, divisor = large + small * ratio;
  const double im = (second - first * ratio) / divisor;
  return (factor_number){(first + second * ratio) / divisor, swap ? -im : im};
}

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

double factor_largest_part(const double *numbers, int64_t count) {
  double most = 0;
  for (int64_t i = 0; i < 2 * count; i++) most = fmax(most, fabs(numbers[i]));
  return most;
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

factor_number factor_complex_reflector(const factor *f, factor_numbers x, int64_t length, double *out_tau) {
  const factor_number first = factor_number_at(x, 0), phase = factor_phase(first);
  const double size = factor_size(first), norm = hypot(size, norm_of(f, factor_from(x, 1), length - 1));
  *out_tau = 0;
  if (norm == 0) return first;
  const factor_number v0 = {phase.re * (size + norm), phase.im * (size + norm)};
  for (int64_t i = 1; i < length; i++) factor_put_number(x, i, factor_quotient(factor_number_at(x, i), v0));
  factor_put_number(x, 0, (factor_number){1, 0});
  *out_tau = (size + norm) / norm;
  return (factor_number){-phase.re * norm, -phase.im * norm};
}

void factor_complex_reflect(const factor *f, factor_numbers line, factor_numbers v, int64_t length, double tau) {
  if (tau == 0) return;
  const factor_number sum = factor_inner(f, v, line, length);
  factor_add_scaled(f, line, (factor_number){-tau * sum.re, -tau * sum.im}, v, length);
}

ts_status factor_complex_columns(const factor *f, const factor_rows *a, int64_t steps, factor_numbers diagonal,
                                 double *tau) {
  for (int64_t j = 0; j < steps; j++) {
    const factor_numbers v = factor_from(factor_row(a, j), j);
    TS_TRY(ts_check_cancelled(f->cancel, ts_op_name(f->spec->op)));
    factor_put_number(diagonal, j, factor_complex_reflector(f, v, a->length - j, &tau[j]));
    for (int64_t c = j + 1; c < a->count; c++)
      factor_complex_reflect(f, factor_from(factor_row(a, c), j), v, a->length - j, tau[j]);
  }
  return TS_SUCCESS;
}

ts_status factor_complex_product(const factor *f, const factor_rows *a, int64_t offset, int64_t steps,
                                 const double *tau, const factor_rows *q) {
  memset(q->data, 0, (size_t)(q->count * 2 * q->length) * sizeof *q->data);
  for (int64_t c = 0; c < q->count; c++) factor_row(q, c).re[c] = 1;
  for (int64_t j = steps - 1; j >= 0; j--) {
    const int64_t at = j + offset;
    const factor_numbers v = factor_from(factor_row(a, j), at);
    TS_TRY(ts_check_cancelled(f->cancel, ts_op_name(f->spec->op)));
    for (int64_t c = at; c < q->count; c++)
      factor_complex_reflect(f, factor_from(factor_row(q, c), at), v, q->length - at, tau[j]);
  }
  return TS_SUCCESS;
}
