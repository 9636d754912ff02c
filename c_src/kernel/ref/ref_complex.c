/* Complex numbers, one element: the functions of C99's annex G, with its branch cuts and special values. They compute
 * in double and round each part once. Sums, products and quotients are defined part by part as real ops, each rounded
 * to the parts' type; products do not repair infinities as annex G suggests. */
#include "kernel/ref/ref_internal.h"

#include <complex.h>
#include <math.h>

#ifndef CMPLX /* glibc has it for GCC only */
#define CMPLX(re, im) __builtin_complex((double)(re), (double)(im))
#endif

typedef double complex number;

static number load(ts_dtype type, ts_scalar x) { return CMPLX(ts_scalar_to_f64(type, x), ts_scalar_imag(type, x)); }
static ts_scalar store(ts_dtype type, number z) { return ts_scalar_complex(type, creal(z), cimag(z)); }

/* A real result, rounded to the parts' type. */
static double rounded(ts_dtype type, double x) { return type == TS_C64 ? (double)(float)x : x; }

static number multiply(ts_dtype type, number x, number y) {
  double a = creal(x), b = cimag(x), c = creal(y), d = cimag(y);
  double re = rounded(type, a * c) - rounded(type, b * d), im = rounded(type, a * d) + rounded(type, b * c);
  return CMPLX(re, im);
}

/* fmax, but NaN where one is. */
static double larger(double x, double y) { return isnan(x) || isnan(y) ? (double)NAN : fmax(x, y); }
static double larger_part(number z) { return larger(fabs(creal(z)), fabs(cimag(z))); }

/* A power of two for both numbers of a quotient, so that what Smith's method makes of them stays in the range. */
static double quotient_scale(number x, number y) {
  const double size = larger_part(y);
  return larger(size, larger_part(x)) > 0x1p1020 ? 0x1p-4 : size < 0x1p-900 ? 0x1p120 : 1;
}

/* Smith's method (CACM 5, 1962, algorithm 116), in double. A quotient by zero is the quotient of the parts by |0|. */
static number divide_plain(number x, number y) {
  double a = creal(x), b = cimag(x), c = creal(y), d = cimag(y);
  bool swap = fabs(d) > fabs(c), zero = c == 0 && d == 0;
  double large = swap ? d : c, small = swap ? c : d, first = swap ? b : a, second = swap ? a : b;
  double ratio = zero ? 0 : small / large, divisor = zero ? fabs(c) : large + small * ratio;
  double im = (second - first * ratio) / divisor;
  return CMPLX((first + second * ratio) / divisor, swap ? -im : im);
}

static number divide(ts_dtype type, number x, number y) {
  const double scale = type == TS_C64 ? 1 : quotient_scale(x, y);
  return divide_plain(CMPLX(creal(x) * scale, cimag(x) * scale), CMPLX(creal(y) * scale, cimag(y) * scale));
}

/* exp(y log x) with an exponent of more digits, as its error is one of the result. A zero exponent gives 1; zero to a
 * power with a positive real part is 0. */
static number power(number x, number y) {
  typedef long double part;
  if (y == 0) return 1;
  if (x == 0 && creal(y) > 0) return 0;
  const long double complex l = clogl(x);
  const part a = creall(l), b = cimagl(l), c = creal(y), d = cimag(y);
  return (number)cexpl(__builtin_complex((part)(a * c - b * d), (part)(a * d + b * c)));
}

/* exp(x) cos(y) - 1 = expm1(x) cos(y) - 2 sin(y/2)^2, without cancellation near 0. */
static number expm1_of(number z) {
  double x = creal(z), y = cimag(z), half = sin(y / 2);
  number plain = cexp(z);
  if (!(fabs(x) < 1) || !isfinite(y)) return CMPLX(creal(plain) - 1, cimag(plain));
  return CMPLX(expm1(x) * cos(y) - 2 * half * half, cimag(plain));
}

/* The real part is log1p(x (2 + x) + y^2) / 2 near 0. */
static number log1p_of(number z) {
  double x = creal(z), y = cimag(z);
  number plain = clog(CMPLX(1 + x, y));
  if (!(fabs(x) < 0.5 && fabs(y) < 0.5)) return plain;
  double square = fma(x, x, fma(2, x, y * y));
  return CMPLX(log1p(square) / 2, atan2(y, 1 + x));
}

/* The root whose angle is a third of z's angle. An angle of 0 stays 0, also of an infinity. */
static number cube_root(number z) {
  const double small = fmax(fabs(creal(z)), fabs(cimag(z))) < 0x1p-960 ? 0x1p120 : 0x1p-6;
  const double size = cbrt(hypot(creal(z) * small, cimag(z) * small)) * (small > 1 ? 0x1p-40 : 0x1p2);
  const double angle = carg(z) / 3;
  return CMPLX(size * cos(angle), angle == 0 ? angle : size * sin(angle));
}

/* exp(z) / (1 + exp(z)) left of 0, else 1 / (1 + exp(-z)): the exponential never overflows. */
static number logistic(number z) {
  bool left = creal(z) < 0;
  number e = cexp(left ? z : -z), out = divide_plain(left ? e : 1, 1 + e);
  return cimag(z) == 0 ? CMPLX(creal(out), cimag(z)) : out;
}

/* The signs equal the exact value's, also where a part is 0. */
static number inverse_root(number z) {
  number root = csqrt(z), out = divide_plain(1, root);
  return CMPLX(fabs(creal(out)), copysign(cimag(out), -cimag(root)));
}

/* z / |z|, part by part, and 0 for 0. Scaled by a power of two, so that |z| neither overflows nor loses digits. */
static number direction(number z) {
  const double scale = fmax(fabs(creal(z)), fabs(cimag(z))) < 1 ? 0x1p200 : 0x1p-2;
  const double size = hypot(creal(z) * scale, cimag(z) * scale);
  return size == 0 ? 0 : CMPLX(creal(z) * scale / size, cimag(z) * scale / size);
}

static bool is_nan(number z) { return isnan(creal(z)) || isnan(cimag(z)); }
static bool is_infinity(number z) { return isinf(creal(z)) || isinf(cimag(z)); }

static bool function(ts_opcode code, number z, number *out) {
  switch ((ts_ops_UNARY_FLOAT)code) {
  case TS_OP_EXP: *out = cexp(z); return true;
  case TS_OP_EXPM1: *out = expm1_of(z); return true;
  case TS_OP_LOG: *out = clog(z); return true;
  case TS_OP_LOG1P: *out = log1p_of(z); return true;
  case TS_OP_SIGMOID: *out = logistic(z); return true;
  case TS_OP_COS: *out = ccos(z); return true;
  case TS_OP_SIN: *out = csin(z); return true;
  case TS_OP_TAN: *out = ctan(z); return true;
  case TS_OP_COSH: *out = ccosh(z); return true;
  case TS_OP_SINH: *out = csinh(z); return true;
  case TS_OP_TANH: *out = ctanh(z); return true;
  case TS_OP_ACOS: *out = cacos(z); return true;
  case TS_OP_ASIN: *out = casin(z); return true;
  case TS_OP_ATAN: *out = catan(z); return true;
  case TS_OP_ACOSH: *out = cacosh(z); return true;
  case TS_OP_ASINH: *out = casinh(z); return true;
  case TS_OP_ATANH: *out = catanh(z); return true;
  case TS_OP_SQRT: *out = csqrt(z); return true;
  case TS_OP_RSQRT: *out = inverse_root(z); return true;
  case TS_OP_CBRT: *out = cube_root(z); return true;
  case TS_OP_ERF:
  case TS_OP_ERFC:
  case TS_OP_ERF_INV: break;
  }
  return false;
}

bool ts_ref_complex_unary(ts_opcode code, ts_dtype type, ts_scalar x, ts_scalar *out) {
  number z = load(type, x), result = 0;
  *out = store(type, z);
  if (code == TS_OP_ABS) {
    *out = ts_scalar_from_f64(ts_dtype_part(type), hypot(creal(z), cimag(z)));
    return true;
  }
  if (code == TS_OP_NEGATE) {
    *out = store(type, CMPLX(-creal(z), -cimag(z)));
    return true;
  }
  if (code == TS_OP_SIGN)
    result = direction(z);
  else if (!function(code, z, &result))
    return false;
  *out = store(type, result);
  return true;
}

bool ts_ref_complex_binary(ts_opcode code, ts_dtype type, ts_scalar left, ts_scalar right, ts_scalar *out) {
  number a = load(type, left), b = load(type, right), result;
  switch (code) {
  case TS_OP_ADD: result = CMPLX(creal(a) + creal(b), cimag(a) + cimag(b)); break;
  case TS_OP_SUBTRACT: result = CMPLX(creal(a) - creal(b), cimag(a) - cimag(b)); break;
  case TS_OP_MULTIPLY: result = multiply(type, a, b); break;
  case TS_OP_DIVIDE: result = divide(type, a, b); break;
  case TS_OP_POW: result = power(a, b); break;
  default: return false;
  }
  *out = store(type, result);
  return true;
}

bool ts_ref_complex_truth(ts_dtype type, ts_scalar x) { return load(type, x) != 0; }

bool ts_ref_complex_compare(ts_opcode code, ts_dtype type, ts_scalar a, ts_scalar b, bool *out) {
  bool x = ts_ref_complex_truth(type, a), y = ts_ref_complex_truth(type, b);
  bool equal = load(type, a) == load(type, b);
  switch (code) {
  case TS_OP_EQUAL: *out = equal; return true;
  case TS_OP_NOT_EQUAL: *out = !equal; return true;
  case TS_OP_LOGICAL_AND: *out = x && y; return true;
  case TS_OP_LOGICAL_OR: *out = x || y; return true;
  case TS_OP_LOGICAL_XOR: *out = x != y; return true;
  default: return false;
  }
}

bool ts_ref_complex_predicate(ts_opcode code, ts_dtype type, ts_scalar x, bool *out) {
  number z = load(type, x);
  switch ((ts_ops_PREDICATE)code) {
  case TS_OP_IS_NAN: *out = is_nan(z); return true;
  case TS_OP_IS_INFINITY: *out = is_infinity(z); return true;
  }
  return false;
}

ts_scalar ts_ref_complex_part(ts_opcode code, ts_dtype type, ts_scalar x) {
  ts_dtype part = ts_dtype_part(type);
  return ts_scalar_load(part, x.bytes + (code == TS_OP_IMAG ? ts_dtype_size(part) : 0));
}

ts_scalar ts_ref_complex_join(ts_dtype part, ts_scalar re, ts_scalar im) {
  ts_scalar out = {.words = {0, 0}};
  ts_scalar_store(part, re, out.bytes);
  ts_scalar_store(part, im, out.bytes + ts_dtype_size(part));
  return out;
}
