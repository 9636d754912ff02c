/* Functions of complex numbers as formulas on parts of type f64. */
#include "pass/complex.h"

#include <math.h>

/* ---- short names ---- */

typedef ts_value_id val;

static val add(ts_formula *f, val x, val y) { return ts_formula_binary(f, TS_OP_ADD, x, y); }
static val subtract(ts_formula *f, val x, val y) { return ts_formula_binary(f, TS_OP_SUBTRACT, x, y); }
static val multiply(ts_formula *f, val x, val y) { return ts_formula_binary(f, TS_OP_MULTIPLY, x, y); }
static val divide(ts_formula *f, val x, val y) { return ts_formula_binary(f, TS_OP_DIVIDE, x, y); }
static val negate(ts_formula *f, val x) { return ts_formula_unary(f, TS_OP_NEGATE, x); }
static val absolute(ts_formula *f, val x) { return ts_formula_unary(f, TS_OP_ABS, x); }
static val number(ts_formula *f, double x) { return ts_formula_number(f, x); }
static val less(ts_formula *f, val x, val y) { return ts_formula_binary(f, TS_OP_LESS, x, y); }
static val equals(ts_formula *f, val x, double y) { return ts_formula_binary(f, TS_OP_EQUAL, x, number(f, y)); }
static val both(ts_formula *f, val x, val y) { return ts_formula_binary(f, TS_OP_AND, x, y); }
static val either(ts_formula *f, val x, val y) { return ts_formula_binary(f, TS_OP_OR, x, y); }
static val pick(ts_formula *f, val predicate, val x, val y) { return ts_formula_select(f, predicate, x, y); }

/* ---- quotients ---- */

/* Smith's method (CACM 5, 1962, algorithm 116), as kernel/ref_complex.c. */
ts_parts ts_complex_quotient(ts_formula *f, ts_parts a, ts_parts b) {
  val swap = less(f, absolute(f, b.re), absolute(f, b.im)), zero = both(f, equals(f, b.re, 0), equals(f, b.im, 0));
  val large = pick(f, swap, b.im, b.re), small = pick(f, swap, b.re, b.im);
  val first = pick(f, swap, a.im, a.re), second = pick(f, swap, a.re, a.im);
  val ratio = pick(f, zero, number(f, 0), divide(f, small, large));
  val divisor = pick(f, zero, absolute(f, b.re), add(f, large, multiply(f, small, ratio)));
  val re = divide(f, add(f, first, multiply(f, second, ratio)), divisor);
  val im = divide(f, subtract(f, second, multiply(f, first, ratio)), divisor);
  return (ts_parts){re, pick(f, swap, negate(f, im), im)};
}

/* large * sqrt(1 + (small / large)^2); infinite where a part is, also beside a NaN. */
val ts_complex_modulus(ts_formula *f, ts_parts z) {
  val x = absolute(f, z.re), y = absolute(f, z.im), swap = less(f, x, y);
  val large = pick(f, swap, y, x), small = pick(f, swap, x, y), infinity = number(f, (double)INFINITY);
  val infinite = either(f, equals(f, x, (double)INFINITY), equals(f, y, (double)INFINITY));
  val ratio = pick(f, equals(f, large, 0), large, divide(f, small, large));
  val root = ts_formula_unary(f, TS_OP_SQRT, add(f, number(f, 1), multiply(f, ratio, ratio)));
  return pick(f, infinite, infinity, multiply(f, large, root));
}

ts_parts ts_complex_power(ts_formula *f, ts_parts a, ts_parts b) {
  (void)f, (void)b;
  return a;
}

bool ts_complex_function(ts_formula *f, ts_opcode code, ts_parts z, ts_parts *out) {
  (void)f, (void)code, (void)z, (void)out;
  return false;
}
