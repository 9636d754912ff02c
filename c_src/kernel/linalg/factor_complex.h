/* Shared by the files of kernel/linalg/factor.h for complex matrices: lines of f64, first all real parts, then all
 * imaginary ones, so that the loops are those of real numbers. Pure functions of their arguments; thread-safe. */
#ifndef TS_KERNEL_FACTOR_COMPLEX_H
#define TS_KERNEL_FACTOR_COMPLEX_H

#include "kernel/linalg/factor_internal.h"

#include <math.h>

typedef struct factor_number {
  double re, im;
} factor_number;

static inline factor_number factor_conjugate(factor_number z) { return (factor_number){z.re, -z.im}; }
static inline factor_number factor_negative(factor_number z) { return (factor_number){-z.re, -z.im}; }
static inline factor_number factor_times(factor_number x, factor_number y) {
  return (factor_number){x.re * y.re - x.im * y.im, x.re * y.im + x.im * y.re};
}
static inline factor_number factor_less(factor_number x, factor_number y) {
  return (factor_number){x.re - y.re, x.im - y.im};
}
static inline double factor_size(factor_number z) { return hypot(z.re, z.im); }
static inline factor_number factor_scaled(factor_number z, double by) { return (factor_number){z.re * by, z.im * by}; }
static inline double factor_larger_part(factor_number z) { return fmax(fabs(z.re), fabs(z.im)); }
static inline bool factor_is_zero(factor_number z) { return z.re == 0 && z.im == 0; }
/* z / |z|, and 1 for 0; of size 1 also where z is so small that it has few digits. */
static inline factor_number factor_phase(factor_number z) {
  const double by = factor_size(z) < 0x1p-960 ? 0x1p600 : 1, re = z.re * by, im = z.im * by, size = hypot(re, im);
  return size > 0 ? (factor_number){re / size, im / size} : (factor_number){1, 0};
}
/* By Smith's method, as the op divides. */
factor_number factor_quotient(factor_number x, factor_number y);
/* True of a divisor that is scaled for it. */
bool factor_is_far(factor_number z);
/* True near the ends of the range, where sizes and quotients have few digits or overflow, and of infinities and NaN. */
static inline bool factor_is_far_size(double size) { return !(size >= FACTOR_SHORT && size <= 0x1p1000); }
/* By what numbers of this size, or one beside it, are multiplied to be in the midst of the range. */
static inline double factor_lift(double size) { return size < 1 ? FACTOR_LIFT : 1 / FACTOR_LIFT; }

/* Numbers of a line from some element on. */
typedef struct factor_numbers {
  double *re, *im;
} factor_numbers;

/* `count` lines of `length` numbers, one behind the other. */
typedef struct factor_rows {
  double *data;
  int64_t count, length;
} factor_rows;

static inline factor_numbers factor_row(const factor_rows *rows, int64_t i) {
  double *re = rows->data + i * 2 * rows->length;
  return (factor_numbers){re, re + rows->length};
}
static inline double *factor_rows_end(const factor_rows *rows) { return rows->data + rows->count * 2 * rows->length; }
static inline factor_numbers factor_from(factor_numbers x, int64_t i) { return (factor_numbers){x.re + i, x.im + i}; }
static inline factor_number factor_number_at(factor_numbers x, int64_t i) { return (factor_number){x.re[i], x.im[i]}; }
static inline void factor_put_number(factor_numbers x, int64_t i, factor_number z) {
  x.re[i] = z.re;
  x.im[i] = z.im;
}

/* An operand or a result in memory: pairs of parts, with strides in numbers. */
typedef struct factor_view {
  double *data;
  int64_t row, col;
} factor_view;

static inline factor_number factor_view_at(const factor_view *v, int64_t i, int64_t k) {
  const double *at = v->data + 2 * (i * v->row + k * v->col);
  return (factor_number){at[0], at[1]};
}
static inline void factor_view_put(const factor_view *v, int64_t i, int64_t k, factor_number z) {
  double *at = v->data + 2 * (i * v->row + k * v->col);
  at[0] = z.re;
  at[1] = z.im;
}
/* Row i of the view is line i, from its first element on. */
void factor_load(const factor_view *from, const factor_rows *to, int64_t rows, int64_t cols);
void factor_store(const factor_rows *from, const factor_view *to, int64_t rows, int64_t cols);

/* Sums of conj(x) y, and of x y. */
factor_number factor_inner(const factor *f, factor_numbers x, factor_numbers y, int64_t count);
factor_number factor_product_sum(const factor *f, factor_numbers x, factor_numbers y, int64_t count);
/* A product that may be beyond the range, times 2^power. */
typedef struct factor_far_number {
  factor_number part;
  int64_t power;
} factor_far_number;
void factor_multiply(factor_far_number *product, factor_number x);
factor_number factor_far_value(const factor_far_number *x);
/* y += a x */
void factor_add_scaled(const factor *f, factor_numbers y, factor_number a, factor_numbers x, int64_t count);
/* x *= a */
void factor_scale(factor_numbers x, factor_number a, int64_t count);
/* The sum of |x|^2. */
double factor_square(const factor *f, factor_numbers x, int64_t count);

/* A reflector I - tau v v^H in place of x, with v[0] = 1 and a real tau: it makes x the multiple of the first unit
 * vector that is returned, of the phase opposite to that of x[0]. Nothing is reflected where x is 0. */
factor_number factor_complex_reflector(const factor *f, factor_numbers x, int64_t length, double *out_tau);
typedef struct factor_reflection {
  factor_numbers v;
  int64_t length;
  double tau;
} factor_reflection;

/* For lines `at` and on, of elements `at` and on, by all threads: the pairs -tau v^H x, and x += a v for pairs a. */
void factor_complex_products(const factor *f, const factor_reflection *r, const factor_rows *rows, int64_t at,
                             double *out);
void factor_complex_add(const factor *f, const factor_reflection *r, double *numbers, const factor_rows *rows,
                        int64_t at);
/* Lines from `line` on, of which only elements `at` and on, by all threads. */
void factor_complex_reflect(const factor *f, const factor_reflection *r, const factor_rows *rows, int64_t line,
                            int64_t at);
/* The reflectors of the first `steps` lines, as factor_columns; `diagonal` has an entry for each. */
ts_status factor_complex_columns(const factor *f, const factor_rows *a, int64_t steps, factor_numbers diagonal,
                                 double *tau);
/* As factor_product: the first columns of the product of `steps` reflectors. */
ts_status factor_complex_product(const factor *f, const factor_rows *a, int64_t offset, int64_t steps,
                                 const double *tau, const factor_rows *q);
/* The phase of the first element of largest size. */
factor_number factor_largest_phase(factor_numbers x, int64_t count);

/* One matrix; false in `out_converged` as in factor_internal.h. */
ts_status factor_complex_cholesky(const factor *f);
ts_status factor_complex_triangular(const factor *f);
ts_status factor_complex_lu(const factor *f); /* lu, solve and determinant */
ts_status factor_complex_qr(const factor *f);
ts_status factor_complex_eigh(const factor *f, bool *out_converged);
ts_status factor_complex_svd(const factor *f, bool *out_converged);

#endif
