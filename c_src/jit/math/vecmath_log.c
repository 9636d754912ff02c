/* log, its relatives and roots. With x = 2^k m, 3/4 <= m < 3/2, and f = m - 1:
 * log x = k ln 2 + log(1 + f). m is 1 and k is 0 around x = 1, where the result is small. */
#include "jit/math/vecmath.h"

/* log(1 + f) = f - f^2 / 2 + f^3 P(f). Relative error 2^-26.7. */
static const double log_narrow[] = {0.333334506, -0.249995485, 0.199898347,  -0.166676626,
                                    0.14532046,  -0.130080894, 0.0983496159, -0.0396989435};
/* The same for f64 lanes whose result is narrowed. Relative error 2^-29.5. */
static const double log_short[] = {0.33333339859389893,  -0.25000165335683022,  0.19999605287430045,
                                   -0.16655299360529258, 0.1427622966478346,    -0.12728366694308768,
                                   0.11702037293894127,  -0.091126087942989417, 0.037594298101858444};

ts_vm_parts ts_vm_split(ts_vm *m, ts_v x) {
  ts_v bias = l_int(m, m->wide ? (int64_t)1023 << 52 : 127 << 23);
  ts_v quarter = l_int(m, m->wide ? (int64_t)1 << 51 : 1 << 22); /* from 3/4 to 1 in bits */
  ts_v width = l_int(m, m->wide ? 52 : 23);
  ts_v biased = LLVMBuildLShr(m->b, LLVMBuildAdd(m->b, l_bits(m, x), quarter, ""), width, "");
  ts_vm_parts out = {.exponent = LLVMBuildShl(m->b, biased, width, "")};
  ts_v mantissa = LLVMBuildAdd(m->b, LLVMBuildSub(m->b, l_bits(m, x), out.exponent, ""), bias, "");
  out.f = l_sub(m, l_float(m, mantissa), l_const(m, 1));
  /* An integer below 2^23 (2^52), placed in the low bits of that float. */
  ts_v magic = l_const(m, m->wide ? 0x1p52 : 0x1p23);
  ts_v k = l_float(m, LLVMBuildOr(m->b, biased, l_bits(m, magic), ""));
  out.k = l_sub(m, k, l_const(m, m->wide ? 0x1p52 + 1023 : 0x1p23 + 127));
  return out;
}

ts_vm_parts ts_vm_split_avx512(ts_vm *m, ts_v x) {
  ts_v mantissa = ts_vm_avx512_mantissa(m, x);
  ts_vm_parts out = {.f = l_sub(m, mantissa, l_const(m, 1))};
  out.k = l_sub(m, ts_vm_avx512_exponent(m, x), ts_vm_avx512_exponent(m, mantissa));
  return out;
}

ts_v ts_vm_log_by(ts_vm *m, ts_vm_parts x, ts_v p) {
  ts_v q = l_fma(m, p, x.f, l_const(m, -0.5));
  return l_fma(m, x.k, l_const(m, L_LN2), l_fma(m, l_mul(m, x.f, x.f), q, x.f));
}

static ts_v log_of_parts(ts_vm *m, ts_vm_parts x) {
  return ts_vm_log_by(m, x, m->wide ? L_POLY(m, x.f, log_short) : L_POLY(m, x.f, log_narrow));
}

/* log(1 + f) = 2 s + s^3 P(s^2), s = f / (2 + f). Relative error 2^-28.3 (f32), 2^-55.8 (f64). */
static const double log_single[] = {0.666669488, 0.399575889, 0.30366689};
static const double log_wide[] = {0.66666666666672836, 0.39999999996099844, 0.28571429405853788, 0.22222137659928531,
                                  0.18186390052840376, 0.15249514757472241, 0.15373399308673324};

/* ln 2 in two parts. A product of the first with an exponent is exact. */
#define LOG_LN2_HIGH 0x1.62e42fefa2p-1
#define LOG_LN2_LOW 0x1.9ef35793c7673p-41

/* 2 s is f - f^2 / 2 + s f^2 / 2, whose first term is exact. `low`, below a last place of f, is added to f if it is not
 * NULL: the logarithm's slope is 1 / (1 + f), and 1 - 2 s + 2 s^2 is near enough. */
static ts_v log_of_sum(ts_vm *m, ts_vm_parts x, ts_v low) {
  ts_v s = l_div(m, x.f, l_add(m, x.f, l_const(m, 2))), z = l_mul(m, s, s);
  ts_v half_square = l_mul(m, l_mul(m, x.f, l_const(m, 0.5)), x.f);
  ts_v rest = l_mul(m, s, l_fma(m, z, L_POLY(m, z, log_wide), half_square));
  if (low) rest = l_add(m, rest, l_fma(m, l_fma(m, s, s, l_neg(m, s)), l_add(m, low, low), low));
  rest = l_fma(m, x.k, l_const(m, LOG_LN2_LOW), rest);
  return l_fma(m, x.k, l_const(m, LOG_LN2_HIGH), l_sub(m, x.f, l_sub(m, half_square, rest)));
}

static ts_v log_precise(ts_vm *m, ts_vm_parts x) { return m->wide ? log_of_sum(m, x, NULL) : log_of_parts(m, x); }

static ts_v log_subnormal(ts_vm *m, ts_v x, ts_v y) {
  (void)y;
  ts_vm_parts scaled = ts_vm_split(m, l_mul(m, x, l_const(m, m->wide ? 0x1p52 : 0x1p23)));
  scaled.k = l_sub(m, scaled.k, l_const(m, m->wide ? 52 : 23));
  return log_precise(m, scaled);
}

/* Subnormal, zero, negative, infinite and NaN arguments. Where many are negative, this is not rare; subnormal ones are.
 */
static ts_v log_special(ts_vm *m, ts_v x, ts_v y) {
  (void)y;
  ts_v least = l_int(m, m->wide ? (int64_t)1 << 52 : 1 << 23), one = l_int(m, 1);
  ts_v below = LLVMBuildSub(m->b, l_bits(m, x), one, "");
  ts_v subnormal = LLVMBuildICmp(m->b, LLVMIntULT, below, LLVMBuildSub(m->b, least, one, ""), "");
  ts_v zero = l_const(m, 0), out = l_rarely(m, subnormal, x, log_subnormal, x, NULL);
  out = l_select(m, l_cmp(m, LLVMRealOLT, x, zero), l_const(m, __builtin_nan("")), out);
  return l_select(m, l_cmp(m, LLVMRealOEQ, x, zero), l_const(m, -__builtin_inf()), out);
}

ts_v ts_vm_log(ts_vm *m, ts_v x) {
  if (m->wide && !m->fma) return ts_vm_library(m, "log", "u10", x, NULL);
  if (m->e->target->isa == TS_ISA_AVX512) return log_precise(m, ts_vm_split_avx512(m, x));
  ts_v offset = LLVMBuildSub(m->b, l_bits(m, x), l_int(m, m->wide ? (int64_t)1 << 52 : 1 << 23), "");
  ts_v limit = l_int(m, m->wide ? (int64_t)0x7fe << 52 : 0x7f000000);
  ts_v special = LLVMBuildICmp(m->b, LLVMIntUGE, offset, limit, "");
  return l_rarely(m, special, log_precise(m, ts_vm_split(m, x)), log_special, x, NULL);
}

ts_v ts_vm_log_normal(ts_vm *m, ts_v x) {
  bool avx512 = m->e->target->isa == TS_ISA_AVX512;
  return log_precise(m, avx512 ? ts_vm_split_avx512(m, x) : ts_vm_split(m, x));
}

/* For positive normal numbers in f64 lanes, to 2^-30. */
ts_v ts_vm_log_short(ts_vm *wide, ts_v x) {
  bool avx512 = wide->e->target->isa == TS_ISA_AVX512;
  return log_of_parts(wide, avx512 ? ts_vm_split_avx512(wide, x) : ts_vm_split(wide, x));
}

/* ---- log1p ---- */

static ts_v log1p_outside(ts_vm *m, ts_v x, ts_v y) {
  (void)y;
  ts_v one = l_const(m, 1);
  return ts_vm_log(m, l_select(m, l_cmp(m, LLVMRealOGT, x, one), x, l_add(m, x, one)));
}

/* k of the rounded 1 + x is exact enough; f = 2^-k (1 + x) - 1 is computed from x itself, rounded once. */
static ts_vm_parts split_sum(ts_vm *m, ts_v x, ts_v *inverse) {
  ts_v one = l_const(m, 1), twice_bias = l_int(m, m->wide ? (int64_t)2046 << 52 : 254 << 23);
  ts_vm_parts sum = ts_vm_split(m, l_add(m, one, x));
  *inverse = l_float(m, LLVMBuildSub(m->b, twice_bias, sum.exponent, ""));
  sum.f = l_fma(m, x, *inverse, l_sub(m, *inverse, one));
  return sum;
}

static ts_v log1p_inside(ts_vm *m, ts_v x) {
  ts_v inverse;
  ts_vm_parts sum = split_sum(m, x, &inverse);
  return l_select(m, l_cmp(m, LLVMRealOEQ, x, l_const(m, 0)), x, log_precise(m, sum));
}

static ts_v log1p_by_library(ts_vm *m, ts_v x) {
  ts_v huge = l_cmp(m, LLVMRealOGT, x, l_const(m, 0x1p64)); /* the library overflows too early */
  ts_v usual = ts_vm_library(m, "log1p", "u10", x, NULL),
       tiny = l_cmp(m, LLVMRealOLT, l_abs(m, x), l_const(m, 0x1p-54));
  usual = l_select(m, tiny, x, usual); /* the library loses the last bit of subnormals */
  return l_rarely(m, huge, usual, log1p_outside, x, NULL);
}

ts_v ts_vm_log1p(ts_vm *m, ts_v x) {
  if (m->wide && !m->fma) return log1p_by_library(m, x);
  ts_v least = l_cmp(m, LLVMRealOGT, x, l_const(m, -1)), most = l_cmp(m, LLVMRealOLT, x, l_const(m, 0x1p64));
  ts_v outside = LLVMBuildNot(m->b, LLVMBuildAnd(m->b, least, most, ""), "");
  return l_rarely(m, outside, log1p_inside(m, x), log1p_outside, x, NULL);
}

/* ---- inverse hyperbolic functions ---- */

/* log(2 x), for both asinh and acosh where x^2 overflows. */
static ts_v log_twice(ts_vm *m, ts_v x, ts_v y) {
  (void)y;
  return l_add(m, ts_vm_log(m, x), l_const(m, L_LN2));
}

static ts_v asinh_by_library(ts_vm *m, ts_v a) {
  ts_v usual = ts_vm_library(m, "asinh", "u10", a, NULL), tiny = l_cmp(m, LLVMRealOLT, a, l_const(m, 0x1p-28));
  return l_select(m, tiny, a, usual); /* the library loses the last bit of subnormals */
}

/* A number in two floats. */
typedef struct pair {
  ts_v high, low;
} pair;

/* a + b for |a| >= |b|, whose rounding `low` and what is lost correct. */
static pair add_to_larger(ts_vm *m, ts_v a, ts_v b, ts_v low) {
  ts_v high = l_add(m, a, b);
  return (pair){high, l_add(m, l_add(m, l_sub(m, a, high), b), low)};
}

/* The root of x.high + x.low. Without AVX-512 it costs a root and a division; with it 1 / root x comes of an estimate
 * to 2^-14 and a step that triples its digits. A bound keeps the inverse of 0 finite. */
static pair root_of_pair(ts_vm *m, pair x) {
  ts_v half = l_const(m, 0.5), root, inverse;
  if (m->e->target->isa == TS_ISA_AVX512) {
    ts_v bounded = l_at_least(m, x.high, 0x1p-1000);
    inverse = ts_vm_avx512_rsqrt(m, bounded);
    ts_v e = l_fma(m, l_neg(m, l_mul(m, bounded, inverse)), inverse, l_const(m, 1));
    inverse = l_fma(m, l_mul(m, inverse, e), l_fma(m, e, l_const(m, 0.375), half), inverse);
    root = l_mul(m, x.high, inverse), inverse = l_mul(m, inverse, half);
  } else {
    root = l_sqrt(m, x.high), inverse = l_div(m, half, l_at_least(m, root, 0x1p-500));
  }
  ts_v rest = l_mul(m, l_add(m, l_fma(m, l_neg(m, root), root, x.high), x.low), inverse);
  return add_to_larger(m, root, rest, l_const(m, 0));
}

/* The root of a^2 + c for a and c >= 0. */
static pair root_of_square_plus(ts_vm *m, ts_v a, ts_v c) {
  ts_v square = l_mul(m, a, a), square_low = l_fma(m, a, a, l_neg(m, square));
  ts_v above = l_cmp(m, LLVMRealOGT, square, c);
  pair sum = add_to_larger(m, l_select(m, above, square, c), l_select(m, above, c, square), square_low);
  return root_of_pair(m, sum);
}

/* log(1 + x.high + x.low), x.high >= 0. */
static ts_v log1p_of_pair(ts_vm *m, pair x) {
  ts_v inverse;
  ts_vm_parts sum = split_sum(m, x.high, &inverse);
  return log_of_sum(m, sum, l_mul(m, x.low, inverse));
}

/* log(1 + a + (r - 1)), r^2 = a^2 + 1. The difference from 1 is exact. */
static ts_v asinh_of_magnitude(ts_vm *m, ts_v a) {
  ts_v one = l_const(m, 1), tiny = l_cmp(m, LLVMRealOLT, a, l_const(m, 0x1p-27));
  pair root = root_of_square_plus(m, a, one);
  ts_v usual = log1p_of_pair(m, add_to_larger(m, a, l_sub(m, root.high, one), root.low));
  return l_select(m, tiny, a, usual); /* here the cubic term is below the precision */
}

static ts_v asinh_wide(ts_vm *m, ts_v x) {
  ts_v a = l_abs(m, x), huge = l_cmp(m, LLVMRealOGT, a, l_const(m, 0x1p500));
  ts_v usual = m->fma ? asinh_of_magnitude(m, a) : asinh_by_library(m, a);
  return l_copysign(m, l_rarely(m, huge, usual, log_twice, a, NULL), x);
}

/* With d = x - 1: log(1 + d + r), r^2 = d^2 + 2 d. */
static ts_v acosh_wide(ts_vm *m, ts_v x) {
  ts_v one = l_const(m, 1), d = l_sub(m, x, one), huge = l_cmp(m, LLVMRealOGT, x, l_const(m, 0x1p500)), usual;
  if (m->fma) {
    pair root = root_of_square_plus(m, d, l_add(m, d, d));
    usual = log1p_of_pair(m, add_to_larger(m, root.high, d, root.low));
    usual = l_select(m, l_cmp(m, LLVMRealOLT, x, one), l_const(m, __builtin_nan("")), usual);
  } else {
    usual = ts_vm_library(m, "acosh", "u10", x, NULL);
  }
  return l_rarely(m, huge, usual, log_twice, x, NULL);
}

/* `value` where |x| is finite, else `otherwise`; |x| itself below `tiny`, where the cubic term is below the
 * precision. */
static ts_v choose(ts_vm *m, ts_v a, ts_v value, ts_v otherwise, double tiny, double limit) {
  value = l_select(m, l_cmp(m, LLVMRealOLT, a, l_const(m, limit)), value, otherwise);
  return l_select(m, l_cmp(m, LLVMRealOLT, a, l_const(m, tiny)), a, value);
}

/* A float r near the root of a^2 + c, and what the root has more. c is 1, or 2 a, and c - r^2 has no more digits than
 * a^2, so neither that difference nor the next sum loses what counts. */
static pair root_single(ts_vm *m, ts_v a, ts_v c) {
  ts_v sum = l_fma(m, a, a, c), half = l_const(m, 0.5), root, inverse;
  if (m->e->target->isa == TS_ISA_AVX512) {
    ts_v near = ts_vm_avx512_rsqrt(m, sum), first = l_mul(m, sum, near);
    inverse = l_mul(m, near, half);
    root = l_fma(m, l_fma(m, l_neg(m, first), first, sum), inverse, first);
  } else {
    root = l_sqrt(m, sum), inverse = l_div(m, half, root);
  }
  return (pair){root, l_mul(m, l_fma(m, a, a, l_fma(m, l_neg(m, root), root, c)), inverse)};
}

/* log(1 + f) = f + f^2 P(f), the polynomial of log_narrow. */
static const double log_terms[] = {-0.5,       0.333334506,  -0.249995485, 0.199898347,  -0.166676626,
                                   0.14532046, -0.130080894, 0.0983496159, -0.0396989435};

/* log(1 + x.high + x.low), x.high >= 0, in f32 lanes. `low` adds its product with the slope 1 / (1 + f), of which two
 * terms are near enough. The chain of instructions is long, so the polynomial is taken in two. */
static ts_v log1p_single(ts_vm *m, pair x) {
  ts_v inverse;
  ts_vm_parts sum = split_sum(m, x.high, &inverse);
  ts_v low = l_mul(m, x.low, inverse), square = l_mul(m, sum.f, sum.f);
  ts_v q = L_POLY_IN_TWO(m, sum.f, square, log_terms);
  ts_v rest = l_fma(m, square, q, l_fma(m, l_neg(m, low), sum.f, low));
  return l_fma(m, sum.k, l_const(m, L_LN2), l_add(m, sum.f, rest));
}

/* log(1 + a + (r - 1)), as asinh_of_magnitude. */
static ts_v asinh_single(ts_vm *m, ts_v x) {
  ts_v one = l_const(m, 1), a = l_abs(m, x), huge = l_cmp(m, LLVMRealOGT, a, l_const(m, 0x1p60));
  pair root = root_single(m, a, one);
  ts_v above = l_add(m, l_sub(m, root.high, one), root.low), sum = l_add(m, a, above);
  ts_v usual = log1p_single(m, (pair){sum, l_add(m, l_sub(m, a, sum), above)});
  return l_copysign(m, l_rarely(m, huge, usual, log_twice, a, NULL), x);
}

/* With d = x - 1: log(1 + d + r), as acosh_wide. */
static ts_v acosh_single(ts_vm *m, ts_v x) {
  ts_v one = l_const(m, 1), d = l_sub(m, x, one), huge = l_cmp(m, LLVMRealOGT, x, l_const(m, 0x1p60));
  pair root = root_single(m, d, l_add(m, d, d));
  ts_v usual = log1p_single(m, add_to_larger(m, root.high, d, root.low));
  ts_v least = l_cmp(m, LLVMRealOEQ, x, one), below = l_cmp(m, LLVMRealOLT, x, one); /* the inverse root has a limit */
  usual = l_select(m, least, l_const(m, 0), l_select(m, below, l_const(m, __builtin_nan("")), usual));
  return l_rarely(m, huge, usual, log_twice, x, NULL);
}

/* Without FMA in f64 lanes. */
ts_v ts_vm_asinh(ts_vm *m, ts_v x) {
  if (m->wide) return asinh_wide(m, x);
  if (m->fma) return asinh_single(m, x);
  ts_vm wide = ts_vm_begin(m->e, true, m->lanes);
  ts_v a = l_abs(m, x), w = l_widen(&wide, a), one = l_const(&wide, 1);
  ts_v root = l_sqrt(&wide, l_fma(&wide, w, w, one));
  ts_v out = l_narrow(m, ts_vm_log_short(&wide, l_add(&wide, w, root)));
  return l_copysign(m, choose(m, a, out, a, 0x1p-13, __builtin_inf()), x);
}

ts_v ts_vm_acosh(ts_vm *m, ts_v x) {
  if (m->wide) return acosh_wide(m, x);
  if (m->fma) return acosh_single(m, x);
  ts_vm wide = ts_vm_begin(m->e, true, m->lanes);
  ts_v w = l_widen(&wide, x), one = l_const(&wide, 1);
  ts_v root = l_sqrt(&wide, l_mul(&wide, l_sub(&wide, w, one), l_add(&wide, w, one)));
  ts_v out = l_narrow(m, ts_vm_log_short(&wide, l_add(&wide, w, root)));
  out = l_select(m, l_cmp(m, LLVMRealOLT, x, l_const(m, __builtin_inf())), out, x);
  return l_select(m, l_cmp(m, LLVMRealOLT, x, l_const(m, 1)), l_const(m, __builtin_nan("")), out);
}

/* With (1 + a) / (1 - a) = 2^k (1 + f), s = f / (2 + f) is (1 + a - 2^k (1 - a)) / (1 + a + 2^k (1 - a)), and a itself
 * where k = 0. */
static ts_v atanh_of_magnitude(ts_vm *m, ts_v a) {
  ts_v one = l_const(m, 1), less = l_sub(m, one, a), more = l_add(m, one, a);
  ts_vm_parts ratio = ts_vm_split(m, l_div(m, more, less));
  ts_v power = l_float(m, ratio.exponent);
  ts_v factor = l_sub(m, one, power), less_low = l_sub(m, l_sub(m, one, less), a), twice = l_add(m, a, a);
  ts_v above = l_fma(m, factor, less, twice), below = l_fma(m, power, less, more), inverse = l_div(m, one, below);
  ts_v above_low = l_fma(m, factor, less_low, l_fma(m, factor, less, l_sub(m, twice, above)));
  ts_v s = l_mul(m, above, inverse);
  ts_v s_low = l_mul(m, l_add(m, l_fma(m, l_neg(m, s), below, above), above_low), inverse);
  ts_v is_small = l_cmp(m, LLVMRealOEQ, ratio.k, l_const(m, 0));
  s = l_select(m, is_small, a, s), s_low = l_select(m, is_small, l_const(m, 0), s_low);
  ts_v z = l_mul(m, s, s), cube = l_mul(m, l_mul(m, s, l_const(m, 0.5)), z);
  ts_v rest = l_fma(m, cube, m->wide ? L_POLY(m, z, log_wide) : L_POLY(m, z, log_single), s_low);
  rest = l_fma(m, ratio.k, l_const(m, m->wide ? LOG_LN2_LOW / 2 : 1.42860677e-06 / 2), rest);
  return l_add(m, l_fma(m, ratio.k, l_const(m, m->wide ? LOG_LN2_HIGH / 2 : 0x1.62e4p-2), s), rest);
}

static ts_v atanh_by_fma(ts_vm *m, ts_v x) {
  ts_v a = l_abs(m, x), one = l_const(m, 1), infinity = l_const(m, __builtin_inf());
  ts_v at_edge = l_select(m, l_cmp(m, LLVMRealOEQ, a, one), infinity, l_const(m, __builtin_nan("")));
  return l_copysign(m, l_select(m, l_cmp(m, LLVMRealOLT, a, one), atanh_of_magnitude(m, a), at_edge), x);
}

ts_v ts_vm_atanh(ts_vm *m, ts_v x) {
  if (m->fma) return atanh_by_fma(m, x);
  if (m->wide) return ts_vm_library(m, "atanh", "u10", x, NULL);
  ts_vm wide = ts_vm_begin(m->e, true, m->lanes);
  ts_v a = l_abs(m, x), w = l_widen(&wide, a), one = l_const(&wide, 1);
  ts_v ratio = l_div(&wide, l_add(&wide, one, w), l_sub(&wide, one, w));
  ts_v out = l_narrow(m, l_mul(&wide, ts_vm_log_short(&wide, ratio), l_const(&wide, 0.5)));
  ts_v edge = l_cmp(m, LLVMRealOEQ, a, l_const(m, 1));
  ts_v outside = l_select(m, edge, l_const(m, __builtin_inf()), l_const(m, __builtin_nan("")));
  return l_copysign(m, choose(m, a, out, outside, 0x1p-13, 1), x);
}

/* ---- roots ---- */

/* With AVX-512 one step of Newton's method; its remainder is NaN for 0 and infinity, where the initial value is
 * exact. */
ts_v ts_vm_rsqrt(ts_vm *m, ts_v x) {
  ts_v one = l_const(m, 1);
  if (m->e->target->isa != TS_ISA_AVX512 || m->wide) return l_div(m, one, l_sqrt(m, x));
  ts_v y = ts_vm_avx512_rsqrt(m, x);
  ts_v remainder = l_fma(m, l_neg(m, l_mul(m, x, y)), y, one);
  ts_v better = l_fma(m, l_mul(m, y, l_const(m, 0.5)), remainder, y);
  return l_select(m, l_cmp(m, LLVMRealUNO, remainder, remainder), y, better);
}

/* 1 / cbrt(x) within a tenth, in f64 lanes: the bits of x as an integer are nearly a logarithm. Their upper half is
 * divided by -3 in floating point, where vectors have the instructions. */
static ts_v start_inverse_cbrt(ts_vm *m, ts_v x) {
  ts_v magic = l_const(m, 0x1p52), low = l_int(m, 32);
  ts_v upper = LLVMBuildOr(m->b, LLVMBuildLShr(m->b, l_bits(m, x), low, ""), l_bits(m, magic), "");
  ts_v log = l_sub(m, l_float(m, upper), magic);
  ts_v third = l_fma(m, log, l_const(m, -1.0 / 3), l_const(m, 1430186360.832));
  return l_float(m, LLVMBuildShl(m->b, l_bits(m, l_add(m, third, magic)), low, ""));
}

/* y (1 - e)^(-1/3) with e = 1 - a y^3, which `coefficients` approximate. */
static ts_v better_inverse_cbrt(ts_vm *m, ts_v a, ts_v y, const double *coefficients, int count) {
  ts_v e = l_fma(m, l_neg(m, l_mul(m, l_mul(m, a, y), y)), y, l_const(m, 1));
  return l_fma(m, l_mul(m, y, e), l_poly(m, e, coefficients, count), y);
}

/* A number in f32 lanes, positive and not subnormal: c = a y^2 and e = 1 - c y give c (1 - e)^(-2/3), for which 1 +
 * e P(e) stands, |e| <= 0.1023, relative error 2^-30.4. What the products of c lose is also in e, so a third of it
 * counts. */
static ts_v cbrt_single(ts_vm *m, ts_v a) {
  static const double rest[] = {0.666666687, 0.555555642, 0.493790537, 0.452631891, 0.429510444, 0.406280369};
  ts_v log = LLVMBuildSIToFP(m->b, l_bits(m, a), m->vec, ""); /* nearly a logarithm, as in start_inverse_cbrt */
  ts_v third = l_fma(m, log, l_const(m, -1.0 / 3), l_const(m, 1419900529.0));
  ts_v y = l_float(m, LLVMBuildFPToSI(m->b, third, m->ints, "")), c = l_mul(m, l_mul(m, a, y), y);
  ts_v e = l_fma(m, l_neg(m, c), y, l_const(m, 1));
  return l_fma(m, l_mul(m, c, e), L_POLY(m, e, rest), c);
}

static ts_v cbrt_of_subnormal(ts_vm *m, ts_v a, ts_v y) {
  (void)y;
  return l_mul(m, cbrt_single(m, l_mul(m, a, l_const(m, 0x1p24))), l_const(m, 0x1p-8));
}

static ts_v cbrt_narrow(ts_vm *m, ts_v x) {
  ts_v a = l_abs(m, x), least = l_int(m, (1 << 23) - 1), below = LLVMBuildSub(m->b, l_bits(m, a), l_int(m, 1), "");
  ts_v is_subnormal = LLVMBuildICmp(m->b, LLVMIntULT, below, least, "");
  ts_v c = l_rarely(m, is_subnormal, cbrt_single(m, a), cbrt_of_subnormal, a, NULL);
  return l_copysign(m, l_select(m, l_cmp(m, LLVMRealOLT, a, l_const(m, __builtin_inf())), c, a), x);
}

/* In f64 lanes (1 - e)^(-1/3) = 1 + e P(e), |e| <= 0.1023, relative error 2^-23.4. The last step is Newton's method for
 * a root c of c^3 = a, with c^2 in two parts. Numbers near the ends of the range are scaled. */
ts_v ts_vm_cbrt(ts_vm *m, ts_v x) {
  static const double first[] = {0.333329082, 0.222214654, 0.174478948, 0.145925581}, again[] = {1.0 / 3, 2.0 / 9};
  if (!m->fma) return ts_vm_library(m, "cbrt", "u10", x, NULL);
  if (!m->wide) return cbrt_narrow(m, x);
  ts_v one = l_const(m, 1), magnitude = l_abs(m, x);
  ts_v is_small = l_cmp(m, LLVMRealOLT, magnitude, l_const(m, 0x1p-900));
  ts_v up = l_select(m, is_small, l_const(m, 0x1p180), one);
  ts_v down = l_select(m, is_small, l_const(m, 0x1p-60), one);
  ts_v a = l_mul(m, magnitude, up), y = start_inverse_cbrt(m, a);
  y = better_inverse_cbrt(m, a, y, first, 4);
  y = better_inverse_cbrt(m, a, y, again, 2);
  ts_v inverse_square = l_mul(m, y, y), c = l_mul(m, a, inverse_square), square = l_mul(m, c, c);
  ts_v square_low = l_fma(m, c, c, l_neg(m, square));
  ts_v excess = l_fma(m, square_low, c, l_fma(m, square, c, l_neg(m, a)));
  c = l_mul(m, l_fma(m, excess, l_mul(m, inverse_square, l_const(m, -1.0 / 3)), c), down);
  c = l_select(m, l_cmp(m, LLVMRealOLT, magnitude, l_const(m, __builtin_inf())), c, magnitude);
  return l_copysign(m, c, x);
}
