/* Short names for the ops of formulas on parts of type f64 (pass/complex/complex.h). Internal to complex_math.c and
 * complex_power.c. */
#ifndef TS_PASS_COMPLEX_FORMULA_H
#define TS_PASS_COMPLEX_FORMULA_H

#include "pass/complex/complex.h"

#include <math.h>

typedef ts_value_id val;

static inline val add(ts_formula *f, val x, val y) { return ts_formula_binary(f, TS_OP_ADD, x, y); }
static inline val subtract(ts_formula *f, val x, val y) { return ts_formula_binary(f, TS_OP_SUBTRACT, x, y); }
static inline val multiply(ts_formula *f, val x, val y) { return ts_formula_binary(f, TS_OP_MULTIPLY, x, y); }
static inline val divide(ts_formula *f, val x, val y) { return ts_formula_binary(f, TS_OP_DIVIDE, x, y); }
static inline val negate(ts_formula *f, val x) { return ts_formula_unary(f, TS_OP_NEGATE, x); }
static inline val absolute(ts_formula *f, val x) { return ts_formula_unary(f, TS_OP_ABS, x); }
static inline val number(ts_formula *f, double x) { return ts_formula_number(f, x); }
static inline val less(ts_formula *f, val x, val y) { return ts_formula_binary(f, TS_OP_LESS, x, y); }
static inline val equals(ts_formula *f, val x, double y) { return ts_formula_binary(f, TS_OP_EQUAL, x, number(f, y)); }
static inline val both(ts_formula *f, val x, val y) { return ts_formula_binary(f, TS_OP_AND, x, y); }
static inline val either(ts_formula *f, val x, val y) { return ts_formula_binary(f, TS_OP_OR, x, y); }
static inline val pick(ts_formula *f, val predicate, val x, val y) { return ts_formula_select(f, predicate, x, y); }

static inline val unary(ts_formula *f, ts_opcode code, val x) { return ts_formula_unary(f, code, x); }

static inline val infinity_of(ts_formula *f) { return number(f, (double)INFINITY); }
static inline val is_finite(ts_formula *f, val x) { return less(f, absolute(f, x), infinity_of(f)); }

/* Predicates are u8. */
static inline val constant_like(ts_formula *f, ts_dtype dtype, double x) {
  ts_dtype kept = f->dtype;
  f->dtype = dtype;
  val out = number(f, x);
  f->dtype = kept;
  return out;
}

static inline val bits_of(ts_formula *f, val x) {
  return ts_formula_add(f, TS_OP_BITCAST, &x, 1, &(ts_attrs){.dtype = TS_S64});
}
static inline val from_bits(ts_formula *f, val x) {
  return ts_formula_add(f, TS_OP_BITCAST, &x, 1, &(ts_attrs){.dtype = TS_F64});
}
/* Also true for -0. */
static inline val has_sign(ts_formula *f, val x) { return less(f, bits_of(f, x), constant_like(f, TS_S64, 0)); }

/* |x| with the sign of y, also of -0. */
static inline val with_sign(ts_formula *f, val x, val y) {
  val size = absolute(f, x);
  return pick(f, has_sign(f, y), negate(f, size), size);
}

/* The power e of a by b: a zero exponent gives 1, and 0 to a power with a positive real part is 0. */
static inline ts_parts power_or_limit(ts_formula *f, ts_parts a, ts_parts b, ts_parts e) {
  val nothing = both(f, equals(f, b.re, 0), equals(f, b.im, 0)), zero = number(f, 0);
  val vanishes = both(f, both(f, equals(f, a.re, 0), equals(f, a.im, 0)), less(f, zero, b.re));
  val re = pick(f, nothing, number(f, 1), pick(f, vanishes, zero, e.re));
  return (ts_parts){re, pick(f, either(f, nothing, vanishes), zero, e.im)};
}

#endif
