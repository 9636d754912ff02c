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

/* Subnormal, zero, negative, infinite and NaN arguments. */
static ts_v log_special(ts_vm *m, ts_v x, ts_v y) {
  (void)y;
  ts_vm_parts scaled = ts_vm_split(m, l_mul(m, x, l_const(m, 0x1p23)));
  scaled.k = l_sub(m, scaled.k, l_const(m, 23));
  ts_v zero = l_const(m, 0), subnormal = l_cmp(m, LLVMRealOLT, x, l_const(m, 0x1p-126));
  ts_v out = l_select(m, subnormal, log_of_parts(m, scaled), x);
  out = l_select(m, l_cmp(m, LLVMRealOLT, x, zero), l_const(m, __builtin_nan("")), out);
  return l_select(m, l_cmp(m, LLVMRealOEQ, x, zero), l_const(m, -__builtin_inf()), out);
}

ts_v ts_vm_log(ts_vm *m, ts_v x) {
  if (m->wide) return ts_vm_library(m, "log", "u10", x, NULL);
  if (m->e->target->isa == TS_ISA_AVX512) return log_of_parts(m, ts_vm_split_avx512(m, x));
  ts_v offset = LLVMBuildSub(m->b, l_bits(m, x), l_int(m, 1 << 23), "");
  ts_v special = LLVMBuildICmp(m->b, LLVMIntUGE, offset, l_int(m, 0x7f000000), "");
  return l_rarely(m, special, log_of_parts(m, ts_vm_split(m, x)), log_special, x, NULL);
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
static ts_v log1p_narrow(ts_vm *m, ts_v x) {
  ts_v one = l_const(m, 1);
  ts_vm_parts sum = ts_vm_split(m, l_add(m, one, x));
  ts_v inverse = l_float(m, LLVMBuildSub(m->b, l_int(m, 254 << 23), sum.exponent, ""));
  sum.f = l_fma(m, x, inverse, l_sub(m, inverse, one));
  ts_v out = l_select(m, l_cmp(m, LLVMRealOEQ, x, l_const(m, 0)), x, log_of_parts(m, sum));
  ts_v inside =
      LLVMBuildAnd(m->b, l_cmp(m, LLVMRealOGT, x, l_const(m, -1)), l_cmp(m, LLVMRealOLT, x, l_const(m, 0x1p64)), "");
  return l_rarely(m, LLVMBuildNot(m->b, inside, ""), out, log1p_outside, x, NULL);
}

ts_v ts_vm_log1p(ts_vm *m, ts_v x) {
  if (!m->wide) return log1p_narrow(m, x);
  ts_v huge = l_cmp(m, LLVMRealOGT, x, l_const(m, 0x1p64)); /* the library overflows too early */
  return l_rarely(m, huge, ts_vm_library(m, "log1p", "u10", x, NULL), log1p_outside, x, NULL);
}

/* ---- inverse hyperbolic functions: through f64 lanes for f32 ---- */

/* log(2 x), for both asinh and acosh where x^2 overflows. */
static ts_v log_twice(ts_vm *m, ts_v x, ts_v y) {
  (void)y;
  return l_add(m, ts_vm_log(m, x), l_const(m, L_LN2));
}

static ts_v asinh_wide(ts_vm *m, ts_v x) {
  ts_v a = l_abs(m, x), huge = l_cmp(m, LLVMRealOGT, a, l_const(m, 0x1p500));
  ts_v usual = ts_vm_library(m, "asinh", "u10", a, NULL);
  return l_copysign(m, l_rarely(m, huge, usual, log_twice, a, NULL), x);
}

/* `value` where |x| is finite, else `otherwise`; |x| itself below `tiny`, where the cubic term is below the
 * precision. */
static ts_v choose(ts_vm *m, ts_v a, ts_v value, ts_v otherwise, double tiny, double limit) {
  value = l_select(m, l_cmp(m, LLVMRealOLT, a, l_const(m, limit)), value, otherwise);
  return l_select(m, l_cmp(m, LLVMRealOLT, a, l_const(m, tiny)), a, value);
}

ts_v ts_vm_asinh(ts_vm *m, ts_v x) {
  if (m->wide) return asinh_wide(m, x);
  ts_vm wide = ts_vm_begin(m->e, true, m->lanes);
  ts_v a = l_abs(m, x), w = l_widen(&wide, a), one = l_const(&wide, 1);
  ts_v root = l_sqrt(&wide, l_fma(&wide, w, w, one));
  ts_v out = l_narrow(m, ts_vm_log_short(&wide, l_add(&wide, w, root)));
  return l_copysign(m, choose(m, a, out, a, 0x1p-13, __builtin_inf()), x);
}

ts_v ts_vm_acosh(ts_vm *m, ts_v x) {
  if (m->wide) {
    ts_v huge = l_cmp(m, LLVMRealOGT, x, l_const(m, 0x1p500));
    return l_rarely(m, huge, ts_vm_library(m, "acosh", "u10", x, NULL), log_twice, x, NULL);
  }
  ts_vm wide = ts_vm_begin(m->e, true, m->lanes);
  ts_v w = l_widen(&wide, x), one = l_const(&wide, 1);
  ts_v root = l_sqrt(&wide, l_mul(&wide, l_sub(&wide, w, one), l_add(&wide, w, one)));
  ts_v out = l_narrow(m, ts_vm_log_short(&wide, l_add(&wide, w, root)));
  out = l_select(m, l_cmp(m, LLVMRealOLT, x, l_const(m, __builtin_inf())), out, x);
  return l_select(m, l_cmp(m, LLVMRealOLT, x, l_const(m, 1)), l_const(m, __builtin_nan("")), out);
}

ts_v ts_vm_atanh(ts_vm *m, ts_v x) {
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

ts_v ts_vm_cbrt(ts_vm *m, ts_v x) { return ts_vm_library(m, "cbrt", "u10", x, NULL); }
