/* Rules that turn ops on complex numbers into ops on their real and imaginary parts, before fusion: kernels, vector
 * math and products compute real numbers only (docs/complex.md). Internal to pass/. */
#ifndef TS_PASS_COMPLEX_H
#define TS_PASS_COMPLEX_H

#include "pass/rules.h"

/* A rule of rules.h. Ops that only move elements are left as they are. */
ts_status ts_complex_split(const ts_rule_call *call, ts_value_id *out);

/* A formula under construction. After an error all further ops are skipped, so that formulas need no checks. */
typedef struct ts_formula {
  const ts_rule_call *call;
  ts_dtype dtype; /* of constants */
  const ts_shape *shape;
  ts_status status;
} ts_formula;

/* The parts of a complex value. */
typedef struct ts_parts {
  ts_value_id re, im;
} ts_parts;

ts_value_id ts_formula_add(ts_formula *f, ts_opcode code, const ts_value_id *operands, size_t count,
                           const ts_attrs *attrs);
ts_value_id ts_formula_unary(ts_formula *f, ts_opcode code, ts_value_id x);
ts_value_id ts_formula_binary(ts_formula *f, ts_opcode code, ts_value_id x, ts_value_id y);
ts_value_id ts_formula_select(ts_formula *f, ts_value_id predicate, ts_value_id x, ts_value_id y);
ts_value_id ts_formula_number(ts_formula *f, double number); /* of the formula's type and shape */
ts_value_id ts_formula_convert(ts_formula *f, ts_value_id x, ts_dtype dtype);

/* complex_math.c: an op of class UNARY_FLOAT on parts of type f64; false when complex numbers do not have it. */
bool ts_complex_function(ts_formula *f, ts_opcode code, ts_parts z, ts_parts *out);
/* exp of c64, from its parts of type f32 and the real part in f64; the result is in f64. */
ts_parts ts_complex_short_exponential(ts_formula *f, ts_parts z, ts_value_id wide_re);
ts_parts ts_complex_quotient(ts_formula *f, ts_parts a, ts_parts b);
/* a to the power b. For parts of f32: the error of an exponent in f64 is too small to reach f32; for parts of f64: the
 * exponent has twice their digits (complex_power.c). */
ts_parts ts_complex_short_power(ts_formula *f, ts_parts a, ts_parts b);
ts_parts ts_complex_power(ts_formula *f, ts_parts a, ts_parts b);
ts_value_id ts_complex_modulus(ts_formula *f, ts_parts z);
/* Of parts of f32, and as f64. */
ts_value_id ts_complex_short_modulus(ts_formula *f, ts_parts z, ts_parts wide);
ts_parts ts_complex_sign(ts_formula *f, ts_parts z);

#endif
