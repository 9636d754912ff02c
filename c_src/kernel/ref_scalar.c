#include "kernel/ref_internal.h"

#include <math.h>

/* Floats compute in double and round once to their own type. For f32, f16 and
 * bf16 this gives the correctly rounded sum, difference, product, quotient and
 * root: double has more than twice their precision and two bits to spare. */

/* ---- floats ---- */

/* Winitzki's closed form as a first guess, then Halley's iteration. Past one
 * half the equation is solved in erfc, where 1 - |y| is exact and keeps the
 * digits that erf near 1 has lost. */
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

static double float_unary(ts_opcode code, double x) {
  switch (code) {
  case TS_OP_EXP: return exp(x);
  case TS_OP_EXPM1: return expm1(x);
  case TS_OP_LOG: return log(x);
  case TS_OP_LOG1P: return log1p(x);
  case TS_OP_SIGMOID: return 1 / (1 + exp(-x));
  case TS_OP_COS: return cos(x);
  case TS_OP_SIN: return sin(x);
  case TS_OP_TAN: return tan(x);
  case TS_OP_COSH: return cosh(x);
  case TS_OP_SINH: return sinh(x);
  case TS_OP_TANH: return tanh(x);
  case TS_OP_ACOS: return acos(x);
  case TS_OP_ASIN: return asin(x);
  case TS_OP_ATAN: return atan(x);
  case TS_OP_ACOSH: return acosh(x);
  case TS_OP_ASINH: return asinh(x);
  case TS_OP_ATANH: return atanh(x);
  case TS_OP_SQRT: return sqrt(x);
  case TS_OP_RSQRT: return 1 / sqrt(x);
  case TS_OP_CBRT: return cbrt(x);
  case TS_OP_ERF: return erf(x);
  case TS_OP_ERFC: return erfc(x);
  case TS_OP_ERF_INV: return erf_inv(x);
  case TS_OP_ABS: return fabs(x);
  case TS_OP_NEGATE: return -x;
  case TS_OP_SIGN: return float_sign(x);
  case TS_OP_CEIL: return ceil(x);
  case TS_OP_FLOOR: return floor(x);
  case TS_OP_ROUND: return round(x);
  default: return NAN;
  }
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

/* Some powers are defined by the ops that a program would have in their place (pass/simplify_arithmetic.c), so that no
 * bit depends on who knows the exponent when. Products of less than f64 are f32's. */
static double float_power(ts_dtype type, double a, double b) {
  if (b == 2) return a * a;
  if (b == 3 && type == TS_F64) return a * a * a;
  if (b == 3) return (float)((float)a * (float)a) * (float)a;
  if (b == -1) return 1 / a;
  if (b == 0.5) return a == -INFINITY ? INFINITY : sqrt(a + 0.0); /* of -0: 0 */
  return pow(a, b);
}

static double float_binary(ts_opcode code, ts_dtype type, double a, double b) {
  switch (code) {
  case TS_OP_ADD: return a + b;
  case TS_OP_SUBTRACT: return a - b;
  case TS_OP_MULTIPLY: return a * b;
  case TS_OP_DIVIDE: return a / b;
  case TS_OP_REMAINDER: return fmod(a, b);
  case TS_OP_POW: return float_power(type, a, b);
  case TS_OP_ATAN2: return atan2(a, b);
  case TS_OP_MIN: return float_min(a, b);
  case TS_OP_MAX: return float_max(a, b);
  default: return NAN;
  }
}

static bool float_compare(ts_opcode code, double a, double b) {
  switch (code) {
  case TS_OP_EQUAL: return a == b;
  case TS_OP_NOT_EQUAL: return a != b;
  case TS_OP_GREATER: return a > b;
  case TS_OP_LESS: return a < b;
  case TS_OP_GREATER_EQUAL: return a >= b;
  case TS_OP_LESS_EQUAL: return a <= b;
  default: return false;
  }
}

/* ---- integers: computed in 64 bits, then cut to the type, which is how they wrap ---- */

/* The bits of an element as unsigned, whatever its sign. */
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

static uint64_t integer_unary(ts_opcode code, ts_dtype type, ts_scalar x) {
  uint64_t value = (uint64_t)ts_scalar_to_s64(type, x);
  switch (code) {
  case TS_OP_ABS: return integer_sign(type, x) == UINT64_MAX ? -value : value;
  case TS_OP_NEGATE: return -value;
  case TS_OP_SIGN: return integer_sign(type, x);
  case TS_OP_NOT: return ~value;
  case TS_OP_CLZ: return count_leading_zeros(type, x);
  case TS_OP_POPCOUNT: return (uint64_t)__builtin_popcountll(raw_bits(type, x));
  default: return value; /* ceil, floor, round */
  }
}

static uint64_t quotient(bool is_signed, uint64_t a, uint64_t b) {
  if (b == 0) return UINT64_MAX;
  if (!is_signed) return a / b;
  if (b == UINT64_MAX) return -a; /* x / -1 wraps for the least x */
  return (uint64_t)((int64_t)a / (int64_t)b);
}

static uint64_t remainder_of(bool is_signed, uint64_t a, uint64_t b) {
  if (b == 0) return a;
  if (!is_signed) return a % b;
  if (b == UINT64_MAX) return 0;
  return (uint64_t)((int64_t)a % (int64_t)b);
}

/* A negative power is 1 / base^n cut to an integer, and 0 of 0. */
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

static uint64_t integer_binary(ts_opcode code, ts_dtype type, ts_scalar left, ts_scalar right) {
  bool is_signed = ts_dtype_is_signed(type);
  uint64_t a = (uint64_t)ts_scalar_to_s64(type, left), b = (uint64_t)ts_scalar_to_s64(type, right);
  switch (code) {
  case TS_OP_ADD: return a + b;
  case TS_OP_SUBTRACT: return a - b;
  case TS_OP_MULTIPLY: return a * b;
  case TS_OP_QUOTIENT: return quotient(is_signed, a, b);
  case TS_OP_REMAINDER: return remainder_of(is_signed, a, b);
  case TS_OP_POW: return power(is_signed, a, b);
  case TS_OP_MIN: return integer_less(is_signed, b, a) ? b : a;
  case TS_OP_MAX: return integer_less(is_signed, a, b) ? b : a;
  case TS_OP_AND: return a & b;
  case TS_OP_OR: return a | b;
  case TS_OP_XOR: return a ^ b;
  case TS_OP_SHIFT_LEFT: return shift_left(type, a, raw_bits(type, right));
  case TS_OP_SHIFT_RIGHT: return shift_right(type, a, raw_bits(type, right));
  default: return 0;
  }
}

static bool integer_compare(ts_opcode code, ts_dtype type, ts_scalar left, ts_scalar right) {
  bool is_signed = ts_dtype_is_signed(type);
  uint64_t a = (uint64_t)ts_scalar_to_s64(type, left), b = (uint64_t)ts_scalar_to_s64(type, right);
  switch (code) {
  case TS_OP_EQUAL: return a == b;
  case TS_OP_NOT_EQUAL: return a != b;
  case TS_OP_GREATER: return integer_less(is_signed, b, a);
  case TS_OP_LESS: return integer_less(is_signed, a, b);
  case TS_OP_GREATER_EQUAL: return !integer_less(is_signed, a, b);
  case TS_OP_LESS_EQUAL: return !integer_less(is_signed, b, a);
  default: return false;
  }
}

/* ---- both ---- */

ts_scalar ts_ref_unary(ts_opcode code, ts_dtype type, ts_scalar x) {
  if (ts_dtype_is_float(type)) return ts_scalar_from_f64(type, float_unary(code, ts_scalar_to_f64(type, x)));
  return ts_scalar_from_u64(type, integer_unary(code, type, x));
}

ts_scalar ts_ref_binary(ts_opcode code, ts_dtype type, ts_scalar a, ts_scalar b) {
  if (!ts_dtype_is_float(type)) return ts_scalar_from_u64(type, integer_binary(code, type, a, b));
  return ts_scalar_from_f64(type, float_binary(code, type, ts_scalar_to_f64(type, a), ts_scalar_to_f64(type, b)));
}

bool ts_ref_truth(ts_dtype type, ts_scalar x) {
  return ts_dtype_is_float(type) ? ts_scalar_to_f64(type, x) != 0 : raw_bits(type, x) != 0;
}

bool ts_ref_compare(ts_opcode code, ts_dtype type, ts_scalar a, ts_scalar b) {
  switch (code) {
  case TS_OP_LOGICAL_AND: return ts_ref_truth(type, a) && ts_ref_truth(type, b);
  case TS_OP_LOGICAL_OR: return ts_ref_truth(type, a) || ts_ref_truth(type, b);
  case TS_OP_LOGICAL_XOR: return ts_ref_truth(type, a) != ts_ref_truth(type, b);
  default: break;
  }
  if (!ts_dtype_is_float(type)) return integer_compare(code, type, a, b);
  return float_compare(code, ts_scalar_to_f64(type, a), ts_scalar_to_f64(type, b));
}

bool ts_ref_predicate(ts_opcode code, ts_dtype type, ts_scalar x) {
  if (!ts_dtype_is_float(type)) return false;
  double value = ts_scalar_to_f64(type, x);
  return code == TS_OP_IS_NAN ? isnan(value) : isinf(value);
}
