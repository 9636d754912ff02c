#include "kernel/ref/ref_internal.h"

#include <math.h>

/* Floats compute in double and round once to their own type. For f32, f16 and
 * bf16 this gives the correctly rounded sum, difference, product, quotient and
 * root: double has more than twice their precision and two bits to spare. */

/* ---- floats ---- */

/* Winitzki's closed form as the initial value, then Halley's iteration. Above one half the equation is solved in erfc,
 * where 1 - |y| is exact and keeps the digits that erf near 1 has lost. */
static double erf_inv(double y) {
  if (!(fabs(y) < 1)) return fabs(y) == 1 ? copysign(INFINITY, y) : NAN;
  const double a = 0.147, two_over_pi = 0.63661977236758134308, half_root_pi = 0.88622692545275801365;
  double goal = fabs(y), log_term = log1p(-goal * goal);
  double b = two_over_pi / a + log_term / 2;
  double x = sqrt(fmax(0, sqrt(b * b - log_term / a) - b));
  for (int i = 0; i < 4; i++) {
    double error = goal < 0.5 ? erf(x) - goal : (1 - goal) - erfc(x);
    double step = error * half_root_pi * exp(x * x);
    x -= step / (1 + x * step);
  }
  return copysign(x, y);
}

static double float_sign(double x) { return isnan(x) || x == 0 ? x : copysign(1, x); }

static bool float_unary(ts_opcode code, double x, double *out) {
  switch ((ts_ops_UNARY_FLOAT)code) {
  case TS_OP_EXP: *out = exp(x); return true;
  case TS_OP_EXPM1: *out = expm1(x); return true;
  case TS_OP_LOG: *out = log(x); return true;
  case TS_OP_LOG1P: *out = log1p(x); return true;
  case TS_OP_SIGMOID: *out = 1 / (1 + exp(-x)); return true;
  case TS_OP_COS: *out = cos(x); return true;
  case TS_OP_SIN: *out = sin(x); return true;
  case TS_OP_TAN: *out = tan(x); return true;
  case TS_OP_COSH: *out = cosh(x); return true;
  case TS_OP_SINH: *out = sinh(x); return true;
  case TS_OP_TANH: *out = tanh(x); return true;
  case TS_OP_ACOS: *out = acos(x); return true;
  case TS_OP_ASIN: *out = asin(x); return true;
  case TS_OP_ATAN: *out = atan(x); return true;
  case TS_OP_ACOSH: *out = acosh(x); return true;
  case TS_OP_ASINH: *out = asinh(x); return true;
  case TS_OP_ATANH: *out = atanh(x); return true;
  case TS_OP_SQRT: *out = sqrt(x); return true;
  case TS_OP_RSQRT: *out = 1 / sqrt(x); return true;
  case TS_OP_CBRT: *out = cbrt(x); return true;
  case TS_OP_ERF: *out = erf(x); return true;
  case TS_OP_ERFC: *out = erfc(x); return true;
  case TS_OP_ERF_INV: *out = erf_inv(x); return true;
  }
  switch ((ts_ops_UNARY)code) {
  case TS_OP_ABS: *out = fabs(x); return true;
  case TS_OP_NEGATE: *out = -x; return true;
  case TS_OP_SIGN: *out = float_sign(x); return true;
  case TS_OP_CEIL: *out = ceil(x); return true;
  case TS_OP_FLOOR: *out = floor(x); return true;
  case TS_OP_ROUND: *out = round(x); return true;
  }
  return false;
}

static double float_min(double a, double b) {
  if (isnan(a) || isnan(b)) return NAN;
  if (a == b) return signbit(a) ? a : b; /* -0 < +0 */
  return a < b ? a : b;
}

static double float_max(double a, double b) {
  if (isnan(a) || isnan(b)) return NAN;
  if (a == b) return signbit(a) ? b : a;
  return a > b ? a : b;
}

/* Some powers are defined by equivalent ops (pass/simplify_arithmetic.c), so that the bits do not depend on whether the
 * exponent is a constant. For types narrower than f64 the products are f32's. */
static double float_power(ts_dtype type, double a, double b) {
  if (b == 2) return a * a;
  if (b == 3 && type == TS_F64) return a * a * a;
  if (b == 3) return (float)((float)a * (float)a) * (float)a;
  if (b == -1) return 1 / a;
  if (b == 0.5) return a == -INFINITY ? INFINITY : sqrt(a + 0.0); /* of -0: 0 */
  return pow(a, b);
}

static bool float_binary(ts_opcode code, ts_dtype type, double a, double b, double *out) {
  switch ((ts_ops_BINARY)code) {
  case TS_OP_ADD: *out = a + b; return true;
  case TS_OP_SUBTRACT: *out = a - b; return true;
  case TS_OP_MULTIPLY: *out = a * b; return true;
  case TS_OP_REMAINDER: *out = fmod(a, b); return true;
  case TS_OP_POW: *out = float_power(type, a, b); return true;
  case TS_OP_MIN: *out = float_min(a, b); return true;
  case TS_OP_MAX: *out = float_max(a, b); return true;
  }
  switch ((ts_ops_BINARY_FLOAT)code) {
  case TS_OP_DIVIDE: *out = a / b; return true;
  case TS_OP_ATAN2: *out = atan2(a, b); return true;
  }
  return false;
}

/* ---- integers: computed in 64 bits, then cut to the type, so they wrap ---- */

/* The bits of an element as unsigned, for every type. */
static uint64_t raw_bits(ts_dtype type, ts_scalar x) {
  int width = ts_dtype_bits(type);
  return width == 64 ? x.bits : x.bits & ((UINT64_C(1) << width) - 1);
}

static uint64_t integer_sign(ts_dtype type, ts_scalar x) {
  if (raw_bits(type, x) == 0) return 0;
  return ts_dtype_is_signed(type) && ts_scalar_to_s64(type, x) < 0 ? UINT64_MAX : 1;
}

static uint64_t count_leading_zeros(ts_dtype type, ts_scalar x) {
  uint64_t zeros = 0;
  for (int bit = ts_dtype_bits(type) - 1; bit >= 0 && !(raw_bits(type, x) >> bit & 1); bit--) zeros++;
  return zeros;
}

/* ceil, floor and round do not change integers. */
static bool integer_unary(ts_opcode code, ts_dtype type, ts_scalar x, uint64_t *out) {
  uint64_t value = (uint64_t)ts_scalar_to_s64(type, x);
  switch ((ts_ops_UNARY)code) {
  case TS_OP_ABS: *out = integer_sign(type, x) == UINT64_MAX ? -value : value; return true;
  case TS_OP_NEGATE: *out = -value; return true;
  case TS_OP_SIGN: *out = integer_sign(type, x); return true;
  case TS_OP_CEIL:
  case TS_OP_FLOOR:
  case TS_OP_ROUND: *out = value; return true;
  }
  switch ((ts_ops_UNARY_INTEGER)code) {
  case TS_OP_NOT: *out = ~value; return true;
  case TS_OP_CLZ: *out = count_leading_zeros(type, x); return true;
  case TS_OP_POPCOUNT: *out = (uint64_t)__builtin_popcountll(raw_bits(type, x)); return true;
  }
  return false;
}

static uint64_t quotient(bool is_signed, uint64_t a, uint64_t b) {
  if (b == 0) return UINT64_MAX;
  if (!is_signed) return a / b;
  if (b == UINT64_MAX) return -a; /* x / -1 wraps for the smallest x */
  return (uint64_t)((int64_t)a / (int64_t)b);
}

static uint64_t remainder_of(bool is_signed, uint64_t a, uint64_t b) {
  if (b == 0) return a;
  if (!is_signed) return a % b;
  if (b == UINT64_MAX) return 0;
  return (uint64_t)((int64_t)a % (int64_t)b);
}

/* A negative power is 1 / base^n truncated to an integer; for base 0 it is 0. */
static uint64_t negative_power(uint64_t base, uint64_t exponent) {
  if (base == 1) return 1;
  if (base == UINT64_MAX) return exponent & 1 ? UINT64_MAX : 1;
  return 0;
}

static uint64_t power(bool is_signed, uint64_t base, uint64_t exponent) {
  if (is_signed && (int64_t)exponent < 0) return negative_power(base, exponent);
  uint64_t result = 1;
  for (; exponent; exponent >>= 1, base *= base) {
    if (exponent & 1) result *= base;
  }
  return result;
}

static uint64_t shift_left(ts_dtype type, uint64_t a, uint64_t amount) {
  return amount >= (uint64_t)ts_dtype_bits(type) ? 0 : a << amount;
}

static uint64_t shift_right(ts_dtype type, uint64_t a, uint64_t amount) {
  bool negative = ts_dtype_is_signed(type) && (int64_t)a < 0;
  if (amount >= (uint64_t)ts_dtype_bits(type)) return negative ? UINT64_MAX : 0;
  return negative ? ~(~a >> amount) : a >> amount;
}

static bool integer_less(bool is_signed, uint64_t a, uint64_t b) { return is_signed ? (int64_t)a < (int64_t)b : a < b; }

static bool integer_binary(ts_opcode code, ts_dtype type, ts_scalar left, ts_scalar right, uint64_t *out) {
  bool is_signed = ts_dtype_is_signed(type);
  uint64_t a = (uint64_t)ts_scalar_to_s64(type, left), b = (uint64_t)ts_scalar_to_s64(type, right);
  switch ((ts_ops_BINARY)code) {
  case TS_OP_ADD: *out = a + b; return true;
  case TS_OP_SUBTRACT: *out = a - b; return true;
  case TS_OP_MULTIPLY: *out = a * b; return true;
  case TS_OP_REMAINDER: *out = remainder_of(is_signed, a, b); return true;
  case TS_OP_POW: *out = power(is_signed, a, b); return true;
  case TS_OP_MIN: *out = integer_less(is_signed, b, a) ? b : a; return true;
  case TS_OP_MAX: *out = integer_less(is_signed, a, b) ? b : a; return true;
  }
  switch ((ts_ops_BINARY_INTEGER)code) {
  case TS_OP_QUOTIENT: *out = quotient(is_signed, a, b); return true;
  case TS_OP_AND: *out = a & b; return true;
  case TS_OP_OR: *out = a | b; return true;
  case TS_OP_XOR: *out = a ^ b; return true;
  case TS_OP_SHIFT_LEFT: *out = shift_left(type, a, raw_bits(type, right)); return true;
  case TS_OP_SHIFT_RIGHT: *out = shift_right(type, a, raw_bits(type, right)); return true;
  }
  return false;
}

/* ---- the choice by class ---- */

static bool unary(ts_opcode code, ts_dtype type, ts_scalar x, ts_scalar *out) {
  double number = 0;
  uint64_t bits = 0;
  bool is_float = ts_dtype_is_float(type);
  if (ts_dtype_is_complex(type)) return ts_ref_complex_unary(code, type, x, out);
  bool known = is_float ? float_unary(code, ts_scalar_to_f64(type, x), &number) : integer_unary(code, type, x, &bits);
  *out = is_float ? ts_scalar_from_f64(type, number) : ts_scalar_from_u64(type, bits);
  return known;
}

static bool binary(ts_opcode code, ts_dtype type, ts_scalar a, ts_scalar b, ts_scalar *out) {
  double number = 0;
  uint64_t bits = 0;
  bool is_float = ts_dtype_is_float(type);
  if (ts_dtype_is_complex(type)) return ts_ref_complex_binary(code, type, a, b, out);
  bool known = is_float ? float_binary(code, type, ts_scalar_to_f64(type, a), ts_scalar_to_f64(type, b), &number)
                        : integer_binary(code, type, a, b, &bits);
  *out = is_float ? ts_scalar_from_f64(type, number) : ts_scalar_from_u64(type, bits);
  return known;
}

bool ts_ref_truth(ts_dtype type, ts_scalar x) {
  if (ts_dtype_is_complex(type)) return ts_ref_complex_truth(type, x);
  return ts_dtype_is_float(type) ? ts_scalar_to_f64(type, x) != 0 : raw_bits(type, x) != 0;
}

/* False when either operand is NaN. */
static bool less(ts_dtype type, ts_scalar a, ts_scalar b) {
  if (ts_dtype_is_float(type)) return ts_scalar_to_f64(type, a) < ts_scalar_to_f64(type, b);
  return integer_less(ts_dtype_is_signed(type), (uint64_t)ts_scalar_to_s64(type, a),
                      (uint64_t)ts_scalar_to_s64(type, b));
}

static bool equal(ts_dtype type, ts_scalar a, ts_scalar b) {
  if (ts_dtype_is_float(type)) return ts_scalar_to_f64(type, a) == ts_scalar_to_f64(type, b);
  return ts_scalar_to_s64(type, a) == ts_scalar_to_s64(type, b);
}

static bool compare(ts_opcode code, ts_dtype type, ts_scalar a, ts_scalar b, bool *out) {
  if (ts_dtype_is_complex(type)) return ts_ref_complex_compare(code, type, a, b, out);
  switch ((ts_ops_COMPARE)code) {
  case TS_OP_EQUAL: *out = equal(type, a, b); return true;
  case TS_OP_NOT_EQUAL: *out = !equal(type, a, b); return true;
  case TS_OP_GREATER: *out = less(type, b, a); return true;
  case TS_OP_LESS: *out = less(type, a, b); return true;
  case TS_OP_GREATER_EQUAL: *out = less(type, b, a) || equal(type, a, b); return true;
  case TS_OP_LESS_EQUAL: *out = less(type, a, b) || equal(type, a, b); return true;
  case TS_OP_LOGICAL_AND: *out = ts_ref_truth(type, a) && ts_ref_truth(type, b); return true;
  case TS_OP_LOGICAL_OR: *out = ts_ref_truth(type, a) || ts_ref_truth(type, b); return true;
  case TS_OP_LOGICAL_XOR: *out = ts_ref_truth(type, a) != ts_ref_truth(type, b); return true;
  }
  return false;
}

static bool predicate(ts_opcode code, ts_dtype type, ts_scalar x, bool *out) {
  double value = ts_dtype_is_float(type) ? ts_scalar_to_f64(type, x) : 0;
  if (ts_dtype_is_complex(type)) return ts_ref_complex_predicate(code, type, x, out);
  switch ((ts_ops_PREDICATE)code) {
  case TS_OP_IS_NAN: *out = isnan(value); return true;
  case TS_OP_IS_INFINITY: *out = isinf(value); return true;
  }
  return false;
}

bool ts_ref_has_meaning(ts_opcode code, ts_dtype type) {
  ts_scalar zero = {0}, scalar;
  bool truth;
  switch (ts_op_get_class(code)) {
  case TS_CLASS_UNARY_FLOAT:
  case TS_CLASS_UNARY:
  case TS_CLASS_UNARY_INTEGER: return unary(code, type, zero, &scalar);
  case TS_CLASS_BINARY:
  case TS_CLASS_BINARY_FLOAT:
  case TS_CLASS_BINARY_INTEGER: return binary(code, type, zero, zero, &scalar);
  case TS_CLASS_PREDICATE: return predicate(code, type, zero, &truth);
  case TS_CLASS_COMPARE: return compare(code, type, zero, zero, &truth);
  case TS_CLASS_COMPLEX:
  case TS_CLASS_SOURCE:
  case TS_CLASS_CONVERT:
  case TS_CLASS_SELECT:
  case TS_CLASS_CLAMP:
  case TS_CLASS_SHAPE:
  case TS_CLASS_INDEXED:
  case TS_CLASS_REDUCE:
  case TS_CLASS_ARG_REDUCE:
  case TS_CLASS_SCAN:
  case TS_CLASS_SORT:
  case TS_CLASS_WINDOW:
  case TS_CLASS_DOT:
  case TS_CLASS_LINALG:
  case TS_CLASS_COLLECTIVE:
  case TS_CLASS_FFT:
  case TS_CLASS_CONTROL: return true;
  }
  return false;
}

ts_scalar ts_ref_unary(ts_opcode code, ts_dtype type, ts_scalar x) {
  ts_scalar out = {.words = {0, 0}};
  (void)unary(code, type, x, &out);
  return out;
}

ts_scalar ts_ref_binary(ts_opcode code, ts_dtype type, ts_scalar a, ts_scalar b) {
  ts_scalar out = {.words = {0, 0}};
  (void)binary(code, type, a, b, &out);
  return out;
}

bool ts_ref_compare(ts_opcode code, ts_dtype type, ts_scalar a, ts_scalar b) {
  bool out = false;
  (void)compare(code, type, a, b, &out);
  return out;
}

bool ts_ref_predicate(ts_opcode code, ts_dtype type, ts_scalar x) {
  bool out = false;
  (void)predicate(code, type, x, &out);
  return out;
}
