/* exp and its relatives. All start from x = n ln 2 + r, |r| <= ln 2 / 2. ln 2 is in two parts. The first has enough
 * trailing zeros to make n * ln2_high exact, with or without FMA. Coefficients are minimax (Remez' algorithm on the
 * weighted error), rounded to the type one after another, refitting the remaining ones each time. */
#include "jit/math/vecmath.h"

/* exp(r) = 1 + r + r^2 P(r), |r| <= 0.3475. Relative error 2^-28.2 (f32), 2^-62 (f64). */
static const double exp_narrow[] = {1, 1, 0.49999994, 0.166665152, 0.0416680872, 0.008369294, 0.00138382695};
static const double exp_wide[] = {1,
                                  1,
                                  0.5,
                                  0.16666666666666688,
                                  0.041666666666666824,
                                  0.0083333333333138956,
                                  0.0013888888888777906,
                                  0.00019841269903452541,
                                  2.4801587553016706e-05,
                                  2.7557228219501582e-06,
                                  2.7557063777645589e-07,
                                  2.511427164898509e-08,
                                  2.0985872349390795e-09};

/* The same for f64 lanes whose result is narrowed. Relative error 2^-34.5. */
static const double exp_short[] = {0.99999999996087008,   1.000000000248241,     0.50000001062085053,
                                   0.16666665101667513,   0.041666220720041183,  0.0083335634971634029,
                                   0.0013948499310081008, 0.00019774827816035326};

/* The same weighted for expm1(r). Relative error 2^-26 (f32), 2^-61.6 (f64). */
static const double expm1_wide[] = {0.5,
                                    0.16666666666666677,
                                    0.041666666666666685,
                                    0.0083333333333213775,
                                    0.0013888888888872958,
                                    0.00019841269886851308,
                                    2.480158735029298e-05,
                                    2.7557243408448293e-06,
                                    2.755725063926128e-07,
                                    2.5109337179155831e-08,
                                    2.0922184036050946e-09};
static const double expm1_narrow[] = {0.49999997, 0.166665375, 0.0416677408, 0.00836730376, 0.0013837748};

/* tanh(x) = x + x^3 P(x^2), |x| <= 0.55. Relative error 2^-24.7 (f32), 2^-64 (f64). */
static const double tanh_narrow[] = {-0.333329469, 0.133207291, -0.0526719987, 0.0164378341};
static const double tanh_wide[] = {-0.33333333333333331,   0.13333333333332931,     -0.053968253967951116,
                                   0.021869488524744251,   -0.0088632352773795053,  0.0035921244624283091,
                                   -0.0014558004285255732, 0.00058980528780543801,  -0.00023812073032184781,
                                   9.3768700945595472e-05, -3.2724002729462361e-05, 7.3199909808470254e-06};

/* r coth r = 1 + r^2 P(r^2), |r| <= 0.1738. Relative error 2^-28.7 (f32), 2^-59.9 (f64). */
static const double coth_narrow[] = {0.333332508, -0.02213366512};
static const double coth_wide[] = {0.33333333333333198, -0.02222222222159009, 0.0021164020203193433,
                                   -0.00021163383579926858, 2.1185563408429687e-05};

/* sinh(x) = x + x^3 P(x^2), |x| <= 1. Relative error 2^-31.6 (f32), 2^-61.8 (f64). */
static const double sinh_narrow[] = {0.166666672, 0.00833331048, 0.000198428941, 2.78223024e-06};
static const double sinh_wide[] = {0.16666666666666669,    0.0083333333333329117,  0.00019841269841593405,
                                   2.7557319106762542e-06, 2.5052130996831535e-08, 1.605665940346537e-10,
                                   7.7765900837350236e-13};

typedef struct reduced {
  ts_v r;
  ts_v n;       /* the float nearest x / unit, an integer */
  ts_v shifted; /* n in its low bits */
} reduced;

ts_v ts_vm_magic(ts_vm *m) { return l_const(m, m->wide ? 0x1.8p52 : 0x1.8p23); }

static ts_v integer_of(ts_vm *m, ts_v shifted) {
  return LLVMBuildSub(m->b, l_bits(m, shifted), l_bits(m, ts_vm_magic(m)), "");
}

/* x = n * (high + low) + r. Adding 1.5 * 2^23 (2^52) rounds to an integer and leaves it in the low bits. */
static reduced reduce(ts_vm *m, ts_v x, double reciprocal, double high, double low) {
  reduced out = {.shifted = l_fma(m, x, l_const(m, reciprocal), ts_vm_magic(m))};
  out.n = l_sub(m, out.shifted, ts_vm_magic(m));
  out.r = l_fma(m, out.n, l_const(m, -high), x);
  if (low != 0) out.r = l_fma(m, out.n, l_const(m, -low), out.r);
  return out;
}

#define LN2_HIGH 0.69314718055989033
#define LN2_LOW 5.4979230187083712e-14

static reduced reduce_ln2(ts_vm *m, ts_v x) {
  if (m->wide) return reduce(m, x, L_LOG2_E, LN2_HIGH, LN2_LOW);
  return reduce(m, x, L_LOG2_E, 0x1.62e4p-1, 1.42860677e-06);
}

/* What the rounding of a.r loses, in f64 lanes. */
static ts_v lost_by_reduction(ts_vm *m, ts_v x, reduced a) {
  ts_v first = l_fma(m, a.n, l_const(m, -LN2_HIGH), x);
  return l_fma(m, a.n, l_const(m, -LN2_LOW), l_sub(m, first, a.r));
}

/* 2^k, k a normal exponent. */
static ts_v power_of_two(ts_vm *m, ts_v k) {
  ts_v biased = LLVMBuildAdd(m->b, k, l_int(m, m->wide ? 1023 : 127), "");
  return l_float(m, LLVMBuildShl(m->b, biased, l_int(m, m->wide ? 52 : 23), ""));
}

ts_v ts_vm_scale(ts_vm *m, ts_v a, ts_v n, ts_v shifted) {
  if (m->e->target->isa == TS_ISA_AVX512) return ts_vm_avx512_scale(m, a, n);
  ts_v k = integer_of(m, shifted), bias = l_int(m, 2048); /* a logical shift: AVX2 has no arithmetic one for 64 bits */
  ts_v half = LLVMBuildLShr(m->b, LLVMBuildAdd(m->b, k, bias, ""), l_int(m, 1), "");
  half = LLVMBuildSub(m->b, half, l_int(m, 1024), "");
  ts_v rest = LLVMBuildSub(m->b, k, half, "");
  return l_mul(m, l_mul(m, a, power_of_two(m, half)), power_of_two(m, rest));
}

/* Without FMA the product of the linear term must not be rounded: 1 + (r + r^2 P). */
static ts_v exp_poly(ts_vm *m, ts_v r) {
  if (m->fma) return m->wide ? L_POLY(m, r, exp_wide) : L_POLY(m, r, exp_narrow);
  int count = m->wide ? sizeof(exp_wide) / sizeof(exp_wide[0]) : sizeof(exp_narrow) / sizeof(exp_narrow[0]);
  ts_v q = l_poly(m, r, (m->wide ? exp_wide : exp_narrow) + 2, count - 2);
  return l_add(m, l_const(m, 1), l_add(m, r, l_mul(m, l_mul(m, r, r), q)));
}

ts_v ts_vm_scale_normal(ts_vm *m, ts_v p, ts_v shifted) {
  ts_v n = LLVMBuildShl(m->b, l_bits(m, shifted), l_int(m, m->wide ? 52 : 23), "");
  return l_float(m, LLVMBuildAdd(m->b, l_bits(m, p), n, ""));
}

/* exp(x), or half of it. */
static ts_v exp_normal(ts_vm *m, ts_v x, bool half) {
  reduced a = reduce_ln2(m, x);
  return ts_vm_scale_normal(m, exp_poly(m, a.r), half ? l_sub(m, a.shifted, l_const(m, 1)) : a.shifted);
}

/* True where exp(x) or exp(x) / 2 may not be a normal number. */
static ts_v leaves_normal(ts_vm *m, ts_v x) {
  return l_cmp(m, LLVMRealUGT, l_abs(m, x), l_const(m, m->wide ? 707 : 86));
}

/* Beyond these bounds the result is 0 or infinity. */
static ts_v exp_of_any(ts_vm *m, ts_v x, ts_v y) {
  (void)y;
  reduced a = reduce_ln2(m, l_at_most(m, x, m->wide ? 710 : 89));
  return ts_vm_scale(m, exp_poly(m, a.r), a.n, a.shifted);
}

static ts_v exp_vanishes(ts_vm *m, ts_v x) { return l_cmp(m, LLVMRealOLT, x, l_const(m, m->wide ? -746 : -104)); }

/* The 0 is selected: numbers below the normal ones take processors a hundred times as long, and minus infinity is
 * frequent, as in masks before a softmax. */
ts_v ts_vm_exp(ts_vm *m, ts_v x) {
  ts_v zero = l_const(m, 0), vanishes = exp_vanishes(m, x), out;
  x = l_select(m, vanishes, zero, x);
  if (m->e->target->isa == TS_ISA_AVX512)
    out = exp_of_any(m, x, NULL);
  else
    out = l_rarely(m, leaves_normal(m, x), exp_normal(m, x, false), exp_of_any, x, NULL);
  return l_select(m, vanishes, zero, out);
}

ts_v ts_vm_exp_of_negative(ts_vm *m, ts_v a) {
  ts_v magic = ts_vm_magic(m);
  ts_v t = l_fma(m, a, l_const(m, L_LOG2_E), magic);
  ts_v r = l_fma(m, l_sub(m, t, magic), l_const(m, -L_LN2), a);
  ts_v p = m->wide ? L_POLY(m, r, exp_short) : L_POLY(m, r, exp_narrow);
  return ts_vm_scale_normal(m, p, t);
}

/* With x + x_low = n ln 2 + r + low: 2^n times a + a_low + a (r + r^2 P + low), where a + a r is kept in two parts. */
ts_v ts_vm_times_exp(ts_vm *m, ts_v a, ts_v a_low, ts_v x, ts_v x_low) {
  reduced of = reduce_ln2(m, x);
  ts_v rest = l_add(m, lost_by_reduction(m, x, of), x_low), r = l_add(m, of.r, rest);
  ts_v low = l_add(m, l_sub(m, of.r, r), rest);
  ts_v p = l_fma(m, l_mul(m, r, r), L_POLY(m, r, expm1_wide), low);
  ts_v product = l_mul(m, a, r), product_low = l_fma(m, a, r, l_neg(m, product));
  ts_v sum = l_add(m, a, product), sum_low = l_add(m, l_sub(m, a, sum), product);
  low = l_add(m, sum_low, l_add(m, product_low, l_fma(m, a, p, a_low)));
  return ts_vm_scale(m, l_add(m, sum, low), of.n, of.shifted);
}

/* With p = expm1(r): 2^n p + (2^n - 1), computed at half the scale so that 2^128 (2^1024) does not occur. With n = 0 it
 * is p, which may be subnormal: then half of it would lose its last bit. */
ts_v ts_vm_expm1(ts_vm *m, ts_v x) {
  if (m->wide && !m->fma) return ts_vm_library(m, "expm1", "u10", x, NULL);
  ts_v bounded = l_at_least(m, l_at_most(m, x, m->wide ? 710 : 89), m->wide ? -40 : -18), p;
  reduced a = reduce_ln2(m, bounded);
  ts_v square = l_mul(m, a.r, a.r);
  if (m->wide)
    p = l_add(m, a.r, l_fma(m, square, L_POLY(m, a.r, expm1_wide), lost_by_reduction(m, bounded, a)));
  else
    p = l_fma(m, square, L_POLY(m, a.r, expm1_narrow), a.r);
  ts_v half = power_of_two(m, LLVMBuildSub(m->b, integer_of(m, a.shifted), l_int(m, 1), ""));
  ts_v sum = l_fma(m, p, half, l_sub(m, half, l_const(m, 0.5)));
  ts_v is_p = l_cmp(m, LLVMRealOEQ, a.n, l_const(m, 0));
  return l_copysign(m, l_select(m, is_p, p, l_add(m, sum, sum)), x);
}

/* With -x = n ln 2 + r and p = expm1(r): 2^-n by 1 + 2^-n + p. What the first sum loses is added to r. 2^-n is a normal
 * number. */
static ts_v sigmoid_of_usual(ts_vm *m, ts_v x) {
  ts_v one = l_const(m, 1), bounded = l_at_most(m, x, m->wide ? 37 : 17.4); /* from there the result is 1 */
  reduced a = reduce_ln2(m, l_neg(m, bounded));
  ts_v n = LLVMBuildShl(m->b, l_bits(m, a.shifted), l_int(m, m->wide ? 52 : 23), "");
  ts_v power = l_float(m, LLVMBuildSub(m->b, l_bits(m, one), n, "")), sum = l_add(m, one, power);
  ts_v rest = l_add(m, a.r, l_sub(m, power, l_sub(m, sum, one))), square = l_mul(m, a.r, a.r);
  ts_v p = l_fma(m, square, m->wide ? L_POLY(m, a.r, expm1_wide) : L_POLY(m, a.r, expm1_narrow), rest);
  return l_div(m, power, l_add(m, sum, p));
}

/* exp(x), far below 0. */
static ts_v sigmoid_of_small(ts_vm *m, ts_v x, ts_v y) {
  ts_v zero = l_const(m, 0), vanishes = exp_vanishes(m, x);
  return l_select(m, vanishes, zero, exp_of_any(m, l_select(m, vanishes, zero, x), y));
}

/* 1 / (1 + exp(-x)): no rounding but that of the sum and that of the quotient counts fully. */
ts_v ts_vm_sigmoid(ts_vm *m, ts_v x) {
  ts_v small = l_cmp(m, LLVMRealOLT, x, l_const(m, m->wide ? -708 : -87));
  return l_rarely(m, small, sigmoid_of_usual(m, x), sigmoid_of_small, x, NULL);
}

/* a = n ln 2 / 2 + r. For f32 one product with ln 2 is enough: a is at most 10. */
static reduced reduce_half_ln2(ts_vm *m, ts_v a) {
  if (m->wide) return reduce(m, a, 2 * L_LOG2_E, LN2_HIGH / 2, LN2_LOW / 2);
  return reduce(m, a, 2 * L_LOG2_E, 0.34657359027997264, 0);
}

/* With exp(2 r) = (c + r) / (c - r), c = 1 + r^2 P(r^2): 1 - 2 (c - r) / (2^n (c + r) + c - r), where an error counts
 * half or less. */
static ts_v large_tanh(ts_vm *m, ts_v a) {
  reduced b = reduce_half_ln2(m, l_at_most(m, a, m->wide ? 20 : 10));
  ts_v one = l_const(m, 1), z = l_mul(m, b.r, b.r), p = m->wide ? L_POLY(m, z, coth_wide) : L_POLY(m, z, coth_narrow);
  ts_v c = l_fma(m, p, z, one), less = l_sub(m, c, b.r), more = l_add(m, c, b.r);
  ts_v below = l_add(m, ts_vm_scale_normal(m, more, b.shifted), less);
  return l_fma(m, l_div(m, less, below), l_const(m, -2), one);
}

/* A polynomial below 0.55. It keeps NaN, the exponential does not. Loops that converge often have no number above, and
 * then the exponential and the quotient would take most of the time. */
ts_v ts_vm_tanh(ts_vm *m, ts_v x) {
  ts_v a = l_abs(m, x), z = l_mul(m, a, a);
  ts_v small = m->wide ? L_POLY(m, z, tanh_wide) : L_POLY(m, z, tanh_narrow);
  small = l_fma(m, l_mul(m, small, z), a, a);
  ts_v is_large = l_cmp(m, LLVMRealOGE, a, l_const(m, 0.55));
  l_branch branch = l_branch_begin(m, is_large, true);
  ts_v mixed = l_select(m, is_large, large_tanh(m, a), small);
  l_branch_end(m, &branch);
  return l_copysign(m, l_branch_merge(m, &branch, small, mixed), x);
}

/* exp(|x|) / 2, which overflows only where sinh and cosh do. */
static ts_v half_exp_of_any(ts_vm *m, ts_v magnitude, ts_v y) {
  (void)y;
  reduced a = reduce_ln2(m, l_at_most(m, magnitude, m->wide ? 711 : 90));
  a.n = l_sub(m, a.n, l_const(m, 1));
  a.shifted = l_sub(m, a.shifted, l_const(m, 1));
  return ts_vm_scale(m, exp_poly(m, a.r), a.n, a.shifted);
}

static ts_v half_exp(ts_vm *m, ts_v magnitude) {
  if (m->e->target->isa == TS_ISA_AVX512) return half_exp_of_any(m, magnitude, NULL);
  return l_rarely(m, leaves_normal(m, magnitude), exp_normal(m, magnitude, true), half_exp_of_any, magnitude, NULL);
}

ts_v ts_vm_sinh(ts_vm *m, ts_v x) {
  ts_v a = l_abs(m, x), w = half_exp(m, a), z = l_mul(m, a, a);
  ts_v large = l_sub(m, w, l_div(m, l_const(m, 0.25), w));
  ts_v small = m->wide ? L_POLY(m, z, sinh_wide) : L_POLY(m, z, sinh_narrow);
  small = l_fma(m, l_mul(m, small, z), a, a);
  return l_copysign(m, l_select(m, l_cmp(m, LLVMRealOLT, a, l_const(m, 1)), small, large), x);
}

ts_v ts_vm_cosh(ts_vm *m, ts_v x) {
  ts_v w = half_exp(m, l_abs(m, x));
  return l_add(m, w, l_div(m, l_const(m, 0.25), w));
}
