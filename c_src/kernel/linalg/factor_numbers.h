/* Shared by the files of kernel/linalg/factor.h for complex matrices: lines of f64, first all real parts, then all
 * imaginary ones, so that loops for real numbers serve them. Pure functions of their arguments; thread-safe. */
#ifndef TS_KERNEL_FACTOR_NUMBERS_H
#define TS_KERNEL_FACTOR_NUMBERS_H

#include "kernel/linalg/factor_internal.h"

#include <math.h>

/* True of a divisor that is scaled for it. */
bool factor_is_far(factor_number z);
/* True near the ends of the range, where sizes and quotients have few digits or overflow, and of infinities and NaN. */
static inline bool factor_is_far_size(double size) { return !(size >= FACTOR_SHORT && size <= 0x1p1000); }
/* The factor that brings numbers of about this size into the middle of the range. */
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
/* A product that may be beyond the range, times 2^power. */
typedef struct factor_far_number {
  factor_number part;
  int64_t power;
} factor_far_number;
void factor_multiply(factor_far_number *product, factor_number x);
factor_number factor_far_value(const factor_far_number *x);

#endif
