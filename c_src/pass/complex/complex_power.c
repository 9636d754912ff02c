/* Powers of complex numbers in c128: exp(b log a), with an exponent of twice the digits of f64. An error of the
 * exponent is an error of the result, so it may not grow with the exponent's size.
 *
 * A number of twice the digits is the unevaluated sum of two (T. J. Dekker, "A floating-point technique for extending
 * the available precision", 1971). Graphs have no fused multiply-add; exact products come from halves of the digits. */
#include "pass/complex/complex_formula.h"

typedef struct wide {
  val high, low;
} wide;

static wide constant(ts_formula *f, double high, double low) { return (wide){number(f, high), number(f, low)}; }

/* ---- sums and products ---- */

/* Exact, of |x| >= |y|. */
static wide ordered_sum(ts_formula *f, val x, val y) {
  val sum = add(f, x, y);
  return (wide){sum, subtract(f, y, subtract(f, sum, x))};
}

/* Exact (D. Knuth, "Seminumerical algorithms", 4.2.2). */
static wide sum_of(ts_formula *f, val x, val y) {
  val sum = add(f, x, y), part = subtract(f, sum, x);
  val rest = add(f, subtract(f, x, subtract(f, sum, part)), subtract(f, y, part));
  return (wide){sum, rest};
}

/* The first 26 digits, and the other 27. */
static wide halves(ts_formula *f, val x) {
  val mask = constant_like(f, TS_S64, -134217728.0), high = from_bits(f, both(f, bits_of(f, x), mask));
  return (wide){high, subtract(f, x, high)};
}

/* The last digit of the product of two second halves is lost. */
static wide product_of(ts_formula *f, val x, val y) {
  val product = multiply(f, x, y);
  wide a = halves(f, x), b = halves(f, y);
  val rest = subtract(f, multiply(f, a.high, b.high), product);
  rest = add(f, add(f, rest, multiply(f, a.high, b.low)), multiply(f, a.low, b.high));
  return (wide){product, add(f, rest, multiply(f, a.low, b.low))};
}

static wide wide_sum(ts_formula *f, wide x, wide y) {
  wide sum = sum_of(f, x.high, y.high);
  return ordered_sum(f, sum.high, add(f, sum.low, add(f, x.low, y.low)));
}

static wide wide_product(ts_formula *f, wide x, wide y) {
  wide product = product_of(f, x.high, y.high);
  val cross = add(f, multiply(f, x.high, y.low), multiply(f, x.low, y.high));
  return ordered_sum(f, product.high, add(f, product.low, cross));
}

static wide wide_quotient(ts_formula *f, wide x, wide y) {
  val first = divide(f, x.high, y.high);
  wide product = product_of(f, first, y.high);
  val rest = subtract(f, subtract(f, x.high, product.high), product.low);
  rest = subtract(f, add(f, rest, x.low), multiply(f, first, y.low));
  return ordered_sum(f, first, divide(f, rest, y.high));
}

static wide negative(ts_formula *f, wide x) { return (wide){negate(f, x.high), negate(f, x.low)}; }
static wide pick_wide(ts_formula *f, val predicate, wide x, wide y) {
  return (wide){pick(f, predicate, x.high, y.high), pick(f, predicate, x.low, y.low)};
}

/* x + sign x^3 / 3 + x^5 / 5 + sign x^7 / 7 ..., `terms` terms; all but the first two have single digits. */
static wide odd_series(ts_formula *f, wide x, double sign, int terms) {
  wide square = wide_product(f, x, x),
       cube = wide_product(f, wide_product(f, x, square),
                           constant(f, sign * 0x1.5555555555555p-2, sign * 0x1.5555555555555p-56));
  val rest = number(f, 0);
  for (int k = terms - 1; k >= 2; k--)
    rest = add(f, multiply(f, rest, square.high), number(f, (k % 2 ? sign : 1) / (2 * k + 1)));
  rest = multiply(f, multiply(f, rest, multiply(f, square.high, square.high)), x.high);
  return wide_sum(f, x, wide_sum(f, cube, (wide){rest, number(f, 0)}));
}

/* ---- the logarithm of a number with parts that are finite, not both 0 ---- */

/* The parts' sizes in order, times a power of 2 that makes the larger one 1 to 2; the power. */
typedef struct ordered {
  val large, small, power;
} ordered;

static ordered order(ts_formula *f, val x, val y) {
  val swap = less(f, x, y), larger = pick(f, swap, y, x), tiny = less(f, larger, number(f, 0x1p-900));
  val lift = pick(f, tiny, number(f, 0x1p120), number(f, 1)), lifted = multiply(f, larger, lift);
  val digits = constant_like(f, TS_S64, 52), bias = constant_like(f, TS_S64, 1023);
  val power = subtract(f, ts_formula_binary(f, TS_OP_SHIFT_RIGHT, bits_of(f, lifted), digits), bias);
  /* in two steps, as 2^-1023 has no inverse of normal size */
  val half = ts_formula_binary(f, TS_OP_SHIFT_RIGHT, power, constant_like(f, TS_S64, 1));
  val one = from_bits(f, ts_formula_binary(f, TS_OP_SHIFT_LEFT, subtract(f, bias, half), digits));
  val other = from_bits(f, ts_formula_binary(f, TS_OP_SHIFT_LEFT, subtract(f, bias, subtract(f, power, half)), digits));
  val small = multiply(f, multiply(f, multiply(f, pick(f, swap, x, y), lift), one), other);
  val moved = subtract(f, ts_formula_convert(f, power, TS_F64), pick(f, tiny, number(f, 120), number(f, 0)));
  return (ordered){multiply(f, multiply(f, lifted, one), other), small, moved};
}

/* The sum of squares m is 1 to 8: a power of 2 brings it near 1, and log m = 2 artanh((m - 1) / (m + 1)). */
static wide log_of_modulus(ts_formula *f, const ordered *z) {
  static const double bounds[] = {0x1.6a09e667f3bcdp+0, 0x1.6a09e667f3bcdp+1, 0x1.6a09e667f3bcdp+2};
  wide m = wide_sum(f, product_of(f, z->large, z->large), product_of(f, z->small, z->small));
  val scale = number(f, 1), power = z->power, half = number(f, 0.5);
  for (int i = 0; i < 3; i++) {
    val above = less(f, number(f, bounds[i]), m.high);
    scale = pick(f, above, multiply(f, scale, half), scale);
    power = pick(f, above, add(f, power, half), power);
  }
  m = (wide){multiply(f, m.high, scale), multiply(f, m.low, scale)};
  wide below = ordered_sum(f, subtract(f, m.high, number(f, 1)), m.low);
  wide above = wide_sum(f, m, constant(f, 1, 0));
  /* power * log 2, whose first part has 41 digits */
  wide whole = {multiply(f, power, number(f, 0x1.62e42fefa2p-1)), multiply(f, power, number(f, 0x1.9ef35793c7673p-41))};
  return wide_sum(f, whole, odd_series(f, wide_quotient(f, below, above), 1, 13));
}

/* The angle of (large, small), 0 to pi / 4: of a quarter near its tangent, and of the rest. */
static wide first_angle(ts_formula *f, const ordered *z) {
  static const double known[][3] = {{0.25, 0x1.f5b75f92c80ddp-3, 0x1.8ab6e3cf7afbdp-57},
                                    {0.5, 0x1.dac670561bb4fp-2, 0x1.a2b7f222f65e2p-56},
                                    {0.75, 0x1.4978fa3269ee1p-1, 0x1.2419a87f2a458p-56},
                                    {1, 0x1.921fb54442d18p-1, 0x1.1a62633145c07p-55}};
  val zero = number(f, 0), quarter = zero;
  wide t = wide_quotient(f, (wide){z->small, zero}, (wide){z->large, zero}), angle = {zero, zero};
  for (int i = 0; i < 4; i++) {
    val above = less(f, number(f, known[i][0] - 0.125), t.high);
    quarter = pick(f, above, number(f, known[i][0]), quarter);
    angle = pick_wide(f, above, constant(f, known[i][1], known[i][2]), angle);
  }
  wide across = ordered_sum(f, subtract(f, t.high, quarter), t.low);
  wide along = wide_sum(f, constant(f, 1, 0), wide_product(f, t, (wide){quarter, zero}));
  return wide_sum(f, angle, odd_series(f, wide_quotient(f, across, along), -1, 11));
}

typedef struct wide_parts {
  wide re, im;
} wide_parts;

static wide_parts ordinary_logarithm(ts_formula *f, ts_parts z) {
  val x = absolute(f, z.re), y = absolute(f, z.im), swap = less(f, x, y);
  ordered o = order(f, x, y);
  wide angle = first_angle(f, &o);
  wide other = wide_sum(f, constant(f, 0x1.921fb54442d18p+0, 0x1.1a62633145c07p-54), negative(f, angle));
  angle = pick_wide(f, swap, other, angle);
  wide beyond = wide_sum(f, constant(f, 0x1.921fb54442d18p+1, 0x1.1a62633145c07p-53), negative(f, angle));
  angle = pick_wide(f, has_sign(f, z.re), beyond, angle);
  angle = pick_wide(f, has_sign(f, z.im), negative(f, angle), angle);
  return (wide_parts){log_of_modulus(f, &o), angle};
}

/* Where a part is infinite or NaN, or both are 0, single digits are exact. */
static wide_parts logarithm(ts_formula *f, ts_parts z) {
  val x = absolute(f, z.re), y = absolute(f, z.im), infinity = infinity_of(f), zero = number(f, 0), one = number(f, 1);
  val none = both(f, equals(f, z.re, 0), equals(f, z.im, 0));
  val endless = either(f, equals(f, x, (double)INFINITY), equals(f, y, (double)INFINITY));
  val finite = both(f, is_finite(f, z.re), is_finite(f, z.im));
  val ordinary = both(f, finite, ts_formula_binary(f, TS_OP_EQUAL, none, constant_like(f, TS_U8, 0)));
  wide_parts l = ordinary_logarithm(f, (ts_parts){pick(f, ordinary, z.re, one), pick(f, ordinary, z.im, one)});
  val size = pick(f, endless, infinity, pick(f, none, negate(f, infinity), add(f, z.re, z.im)));
  wide special = {size, zero}, angle = {ts_formula_binary(f, TS_OP_ATAN2, z.im, z.re), zero};
  return (wide_parts){pick_wide(f, ordinary, l.re, special), pick_wide(f, ordinary, l.im, angle)};
}

/* ---- the power ---- */

/* A second part that is not finite says nothing. */
static wide sane(ts_formula *f, wide x) {
  val low = pick(f, is_finite(f, x.low), x.low, number(f, 0)), sum = add(f, x.high, low);
  val rest = subtract(f, low, subtract(f, sum, x.high));
  return (wide){sum, pick(f, is_finite(f, rest), rest, number(f, 0))};
}

/* x times a wide y, without the sum of both parts. */
static wide times(ts_formula *f, val x, wide y) {
  wide product = product_of(f, x, y.high);
  return (wide){product.high, add(f, product.low, multiply(f, x, y.low))};
}

static wide added(ts_formula *f, wide x, wide y) {
  wide sum = sum_of(f, x.high, y.high);
  return sane(f, (wide){sum.high, add(f, sum.low, add(f, x.low, y.low))});
}

/* exp of the first parts of the exponent, times exp of the second ones. Where exp of the first parts is finite, the
 * second real part is small. The second angle is small only if the first one is: it turns the number, whatever its
 * size, and so leaves the modulus. */
ts_parts ts_complex_power(ts_formula *f, ts_parts a, ts_parts b) {
  wide_parts l = logarithm(f, a);
  wide re = added(f, times(f, b.re, l.re), negative(f, times(f, b.im, l.im)));
  wide im = added(f, times(f, b.re, l.im), times(f, b.im, l.re));
  ts_parts e;
  (void)ts_complex_function(f, TS_OP_EXP, (ts_parts){re.high, im.high}, &e);
  val cosine = ts_formula_unary(f, TS_OP_COS, im.low), sine = ts_formula_unary(f, TS_OP_SIN, im.low);
  /* cos and sin times 1 + the second real part, less 1 */
  val along = add(f, subtract(f, cosine, number(f, 1)), multiply(f, cosine, re.low));
  val across = add(f, sine, multiply(f, sine, re.low));
  val more = subtract(f, multiply(f, e.re, along), multiply(f, e.im, across));
  val turned = add(f, multiply(f, e.im, along), multiply(f, e.re, across));
  val finite = both(f, is_finite(f, e.re), is_finite(f, e.im));
  e.re = pick(f, finite, add(f, e.re, more), e.re);
  e.im = pick(f, finite, add(f, e.im, turned), e.im);
  return power_or_limit(f, a, b, e);
}
