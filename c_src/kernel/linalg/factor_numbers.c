#include "kernel/linalg/factor_numbers.h"

#include "kernel/linalg/linalg_vector.h"

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
  const double im = swap ? first * ratio - second : second - first * ratio;
  return (factor_number){(first + second * ratio) / divisor, im / divisor};
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
