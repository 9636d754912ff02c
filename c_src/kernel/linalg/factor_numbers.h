/* Complex numbers of linear algebra. Pure functions of their arguments; thread-safe. */
#ifndef TS_KERNEL_FACTOR_NUMBERS_H
#define TS_KERNEL_FACTOR_NUMBERS_H

#include <math.h>
#include <stdbool.h>
#include <stdint.h>

/* Lengths below it are not divided by: towards the least numbers, lengths and quotients have few digits. Vectors that
 * are as short become longer by FACTOR_LIFT first. */
#define FACTOR_SHORT 0x1p-900
#define FACTOR_LIFT 0x1p600

/* True near the ends of the range, where sizes and quotients have few digits or overflow, and of infinities and NaN. */
static inline bool factor_is_far_size(double size) { return !(size >= FACTOR_SHORT && size <= 0x1p1000); }
/* The factor that brings numbers of about this size into the middle of the range. */
static inline double factor_lift(double size) { return size < 1 ? FACTOR_LIFT : 1 / FACTOR_LIFT; }

typedef struct factor_number {
  double re, im;
} factor_number;

static inline factor_number factor_conjugate(factor_number z) { return (factor_number){z.re, -z.im}; }
static inline factor_number factor_times(factor_number x, factor_number y) {
  return (factor_number){x.re * y.re - x.im * y.im, x.re * y.im + x.im * y.re};
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
/* By Smith's method, with the zeros of C's quotients; by zero, both parts are divided by it. */
factor_number factor_quotient(factor_number x, factor_number y);
/* True of a divisor that is scaled for it. */
static inline bool factor_is_far(factor_number z) {
  return isfinite(z.re) && isfinite(z.im) && factor_is_far_size(factor_larger_part(z));
}

/* A product, as of a diagonal, whose partial products may be beyond the range: part * 2^power. */
typedef struct factor_far_number {
  factor_number part;
  int64_t power;
} factor_far_number;
void factor_multiply(factor_far_number *product, factor_number x);
factor_number factor_far_value(const factor_far_number *x);

#endif
