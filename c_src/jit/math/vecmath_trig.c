/* Trigonometric functions and their inverses. */
#include "jit/math/vecmath.h"

/* sin(r) = r + r^3 P(r^2), |r| <= pi / 2 + 0.001. Relative error 2^-27.2. */
static const double sin_narrow[] = {-0.166666597, 0.00833306927, -0.000198097725, 2.60607453e-06};

/* sin(r) = r - r^3 P(r^2), cos(r) = 1 - r^2 / 2 + r^4 Q(r^2), |r| <= pi / 4 + 0.0002. Relative error 2^-57.9 and
 * 2^-63.9. */
static const double sin_wide[] = {0.1666666666666663,     -0.00833333333332184,  0.00019841269829358287,
                                  -2.755731353833564e-06, 2.505073446005921e-08, -1.5895450137296376e-10};
static const double cos_wide[] = {0.041666666666666595,    -0.0013888888888873338, 2.4801587288997346e-05,
                                  -2.7557314215157177e-07, 2.0875705075553865e-09, -1.1358729503800712e-11};

/* tan(r) = r + r^3 P(r^2), |r| <= pi / 4 + 0.001. Relative error 2^-25.5 (f32), 2^-55.9 (f64). */
static const double tan_narrow[] = {0.333331347, 0.133393168, 0.0533721261, 0.0245596394, 0.00292521762, 0.00949440058};
static const double tan_wide[] = {0.33333333333332688,     0.13333333333426348,     0.053968253921356728,
                                  0.021869489730279437,    0.0088632175293231735,   0.0035923032482674984,
                                  0.0014546750051438852,   0.00059540215072568094,  0.0002214154964598801,
                                  0.00013845575712551802,  -2.9035484626069414e-05, 9.1827539190419391e-05,
                                  -4.6129311496656043e-05, 2.1158022537442249e-05};

/* asin(x) = x + x^3 P(x^2), |x| <= 1/2. Relative error 2^-27.6 (f32), 2^-55.8 (f64). */
static const double asin_narrow[] = {0.166667536, 0.0749524981, 0.0454765297, 0.0241489392, 0.0422181524};
static const double asin_wide[] = {0.16666666666665381,  0.075000000003438955,  0.044642856822713524,
                                   0.030381959364044045, 0.02237175271653459,   0.017359783600984023,
                                   0.013884471534988962, 0.012174136934859742,  0.0065070400346302652,
                                   0.019584614827711542, -0.016311276949670387, 0.031971008341252771};

/* atan(x) = x + x^3 P(x^2), |x| <= 1. Relative error 2^-26 (f32), 2^-55.08 (f64). */
static const double atan_single[] = {-0.333331674,  0.199941441,  -0.14214243,   0.106790103,
                                     -0.0758062378, 0.0435530469, -0.0165803079, 0.00297423662};
static const double atan_wide[] = {
    -0.33333333333331988,   0.19999999999773857,    -0.14285714272300071,   0.1111111070400298,
    -0.090909016325059225,  0.076922170450658842,   -0.066658901315032423,  0.058774640912792706,
    -0.052398446048296576,  0.046757635400079441,   -0.040967584037787511,  0.034139775147087721,
    -0.025923246439520434,  0.01707632005323555,    -0.0092593175198452445, 0.003897064992251138,
    -0.0011794833649688655, 0.00022655104640808719, -2.0630536002701202e-05};

/* pi in three floats, to 2^-70. No part exceeds the rest of pi, so that -0 - 0 * part stays -0. */
#define PI_1 0x1.921fb4p+1
#define PI_2 0x1.4442dp-23
#define PI_3 0x1.846988p-47

/* pi / 2 in four parts. For n up to 10430 (of REDUCTION_LIMIT) n times the first, and the second, is so short that
 * where its difference from x cancels, that difference is exact. In f32 so is the third, and n times it is a float:
 * what its difference loses is then known exactly. In f64 n times the third is far below any difference. */
static const double half_pi_narrow[] = {0x1.921fb4p+0, 0x1.44p-24, 0x1.0bp-34, 0x1.184698p-44};
static const double half_pi_wide[] = {0x1.921fb54442d18p+0, 0x1.1a62633144p-54, 0x1.c06e0e6894812p-94,
                                      0x1.c1114cf98e804p-148};

#define L_PI 3.14159265358979323846

/* Up to here the reduction below keeps its accuracy and the polynomial its interval. */
#define REDUCTION_LIMIT 16384.0

/* x - n pi with the first product subtracted exactly: the difference is a multiple of the last place of x or of pi, and
 * below 2. */
static ts_v subtract_pi(ts_vm *m, ts_v x, ts_v n) {
  ts_v r = l_fma(m, n, l_const(m, -PI_1), x);
  r = l_fma(m, n, l_const(m, -PI_2), r);
  return l_fma(m, n, l_const(m, -PI_3), r);
}

/* sin(r), negated where the lowest bit of `odd` is set. Computed on |r|, so that zeros keep their sign; near pi / 2
 * rounding must not exceed 1. */
static ts_v sin_poly(ts_vm *m, ts_v r, ts_v odd) {
  ts_v a = l_abs(m, r), z = l_mul(m, a, a);
  ts_v s = l_at_most(m, l_fma(m, l_mul(m, L_POLY(m, z, sin_narrow), z), a, a), 1);
  ts_v sign = LLVMBuildXor(m->b, l_bits(m, r), LLVMBuildShl(m->b, odd, l_int(m, 31), ""), "");
  return l_copysign(m, s, l_float(m, sign));
}

static ts_v large(ts_vm *m, ts_v magnitude) { return l_cmp(m, LLVMRealUGE, magnitude, l_const(m, REDUCTION_LIMIT)); }

static ts_v sin_library(ts_vm *m, ts_v x, ts_v y) { return ts_vm_library(m, "sin", "u10", x, y); }

static ts_v cos_library(ts_vm *m, ts_v x, ts_v y) { return ts_vm_library(m, "cos", "u10", x, y); }

/* The sine of x, or the cosine, in f64 lanes with FMA. x - n pi / 2 is r - low: the first two differences cancel
 * without rounding where r is small, and low is what the second loses. The polynomial of the sine, or of the cosine, is
 * taken by the lowest bit of n, and the sign by the next one. The difference r - rest keeps the sign of a zero. */
static ts_v circular_wide(ts_vm *m, ts_v x, bool cosine) {
  ts_v magic = l_const(m, 0x1.8p52), minus_half = l_const(m, -0.5), one = l_const(m, 1);
  ts_v t = l_fma(m, x, l_const(m, 2 / L_PI), magic), n = l_sub(m, t, magic);
  ts_v first = l_fma(m, n, l_const(m, -half_pi_wide[0]), x), second_part = l_const(m, half_pi_wide[1]);
  ts_v r = l_fma(m, l_neg(m, n), second_part, first);
  ts_v low = l_fma(m, n, l_const(m, half_pi_wide[2]), l_fma(m, n, second_part, l_sub(m, r, first)));
  ts_v z = l_mul(m, r, r), half = l_mul(m, r, minus_half), slope = l_fma(m, low, l_mul(m, half, r), low);
  ts_v rest = l_fma(m, l_mul(m, r, z), L_POLY(m, z, sin_wide), slope), sine = l_sub(m, r, rest);
  ts_v most = l_fma(m, half, r, one), lost = l_fma(m, half, r, l_sub(m, one, most));
  lost = l_fma(m, r, low, lost);
  ts_v cos = l_add(m, most, l_fma(m, l_mul(m, z, z), L_POLY(m, z, cos_wide), lost));
  ts_v count = l_bits(m, t), swaps;
  if (cosine) count = LLVMBuildAdd(m->b, count, l_int(m, 1), ""); /* cos x = sin(x + pi / 2) */
  swaps = LLVMBuildICmp(m->b, LLVMIntNE, LLVMBuildAnd(m->b, count, l_int(m, 1), ""), l_int(m, 0), "");
  ts_v half_turn = LLVMBuildAnd(m->b, LLVMBuildShl(m->b, count, l_int(m, 62), ""), l_int(m, INT64_MIN), "");
  return l_float(m, LLVMBuildXor(m->b, l_bits(m, l_select(m, swaps, cos, sine)), half_turn, ""));
}

static ts_v sin_wide_of(ts_vm *m, ts_v x) {
  return l_rarely(m, large(m, l_abs(m, x)), circular_wide(m, x, false), sin_library, x, NULL);
}

static ts_v cos_wide_of(ts_vm *m, ts_v x) {
  return l_rarely(m, large(m, l_abs(m, x)), circular_wide(m, x, true), cos_library, x, NULL);
}

ts_v ts_vm_sin(ts_vm *m, ts_v x) {
  if (!m->fma) return sin_library(m, x, NULL);
  if (m->wide) return sin_wide_of(m, x);
  ts_v magic = l_const(m, 0x1.8p23);
  ts_v t = l_fma(m, x, l_const(m, 0.31830988618379067154), magic);
  ts_v s = sin_poly(m, subtract_pi(m, x, l_sub(m, t, magic)), l_bits(m, t));
  return l_rarely(m, large(m, l_abs(m, x)), s, sin_library, x, NULL);
}

/* cos(r + (n + 1/2) pi) = (-1)^(n + 1) sin(r); the odd magic number adds that 1. */
ts_v ts_vm_cos(ts_vm *m, ts_v x) {
  if (!m->fma) return cos_library(m, x, NULL);
  if (m->wide) return cos_wide_of(m, x);
  ts_v a = l_abs(m, x), magic = l_const(m, 0x1.8p23 + 1);
  ts_v t = l_add(m, l_fma(m, a, l_const(m, 0.31830988618379067154), l_const(m, -0.5)), magic);
  ts_v n = l_add(m, l_sub(m, t, magic), l_const(m, 0.5));
  ts_v c = sin_poly(m, subtract_pi(m, a, n), l_bits(m, t));
  return l_rarely(m, large(m, a), c, cos_library, x, NULL);
}

/* x - n pi / 2 and what its rounding loses. */
static ts_v subtract_half_pi(ts_vm *m, ts_v x, ts_v n, ts_v *low) {
  const double *parts = m->wide ? half_pi_wide : half_pi_narrow;
  ts_v part[4];
  for (int i = 0; i < 4; i++) part[i] = l_const(m, -parts[i]);
  ts_v first = l_fma(m, n, part[0], x), second = l_fma(m, n, part[1], first), r = l_fma(m, n, part[2], second);
  ts_v lost = l_fma(m, n, part[1], l_sub(m, first, second));
  lost = l_add(m, lost, l_fma(m, n, part[2], l_sub(m, second, r)));
  *low = l_fma(m, n, part[3], lost);
  return r;
}

static ts_v tan_library(ts_vm *m, ts_v x, ts_v y) { return ts_vm_library(m, "tan", "u10", x, y); }

/* tan(r) for even n, -1 / tan(r) for odd n. */
ts_v ts_vm_tan(ts_vm *m, ts_v x) {
  if (!m->fma) {
    ts_v tiny = l_cmp(m, LLVMRealOLT, l_abs(m, x), l_const(m, m->wide ? 0x1p-28 : 0x1p-14));
    return l_select(m, tiny, x, tan_library(m, x, NULL)); /* the library loses the last bit of subnormals */
  }
  ts_v magic = ts_vm_magic(m), t = l_fma(m, x, l_const(m, 2 / L_PI), magic), low;
  ts_v r = subtract_half_pi(m, x, l_sub(m, t, magic), &low), z = l_mul(m, r, r);
  ts_v p = m->wide ? L_POLY(m, z, tan_wide) : L_POLY(m, z, tan_narrow);
  low = l_fma(m, low, z, low); /* the slope of the tangent, nearly */
  ts_v rest = l_fma(m, l_mul(m, r, z), p, low), tan = l_add(m, r, rest);
  ts_v lost = l_add(m, l_sub(m, r, tan), rest), inverse = l_div(m, l_const(m, -1), tan);
  inverse = l_fma(m, l_mul(m, inverse, inverse), lost, inverse);
  ts_v odd = LLVMBuildAnd(m->b, l_bits(m, t), l_int(m, 1), "");
  tan = l_select(m, LLVMBuildICmp(m->b, LLVMIntNE, odd, l_int(m, 0), ""), inverse, tan);
  tan = l_select(m, l_cmp(m, LLVMRealOEQ, x, l_const(m, 0)), x, tan); /* a zero keeps its sign */
  return l_rarely(m, large(m, l_abs(m, x)), tan, tan_library, x, NULL);
}

/* With z = a^2 up to 1/2 and (1 - a) / 2 beyond it: asin a = r + r z P(z) with r = sqrt z, or pi / 2 less its double.
 */
typedef struct arc {
  ts_v magnitude, r, rest; /* a; r; r z P(z) */
  ts_v beyond;             /* a > 1/2 */
} arc;

static arc arc_of(ts_vm *m, ts_v x) {
  ts_v half = l_const(m, 0.5), a = l_abs(m, x);
  arc out = {.magnitude = a, .beyond = l_cmp(m, LLVMRealOGT, a, half)};
  ts_v z = l_select(m, out.beyond, l_fma(m, a, l_const(m, -0.5), half), l_mul(m, a, a));
  out.r = l_select(m, out.beyond, l_sqrt(m, z), a);
  out.rest = l_mul(m, l_mul(m, out.r, z), m->wide ? L_POLY(m, z, asin_wide) : L_POLY(m, z, asin_narrow));
  return out;
}

/* multiple * pi in two parts of the type. */
static ts_v pi_high(ts_vm *m, double multiple) { return l_const(m, multiple * (m->wide ? L_PI : 0x1.921fb6p+1)); }
static ts_v pi_low(ts_vm *m, double multiple) {
  return l_const(m, multiple * (m->wide ? 0x1.1a62633145c07p-53 : -0x1.777a5cp-24));
}

ts_v ts_vm_asin(ts_vm *m, ts_v x) {
  if (!m->fma) return ts_vm_library(m, "asin", "u10", x, NULL);
  arc of = arc_of(m, x);
  ts_v minus_2 = l_const(m, -2);
  ts_v right = pi_high(m, 0.5), first = l_fma(m, of.r, minus_2, right);
  ts_v lost = l_add(m, pi_low(m, 0.5), l_fma(m, of.r, minus_2, l_sub(m, right, first)));
  first = l_select(m, of.beyond, first, of.r);
  ts_v second = l_select(m, of.beyond, l_fma(m, of.rest, minus_2, lost), of.rest);
  return l_copysign(m, l_add(m, first, second), x);
}

ts_v ts_vm_acos(ts_vm *m, ts_v x) {
  if (!m->fma) return ts_vm_library(m, "acos", "u10", x, NULL);
  arc of = arc_of(m, x);
  ts_v angle = l_add(m, of.r, of.rest), twice = l_add(m, angle, angle);
  ts_v obtuse = l_add(m, pi_high(m, 1), l_sub(m, pi_low(m, 1), twice));
  ts_v outer = l_select(m, l_cmp(m, LLVMRealOLT, x, l_const(m, 0)), obtuse, twice);
  ts_v inner = l_sub(m, x, l_sub(m, pi_low(m, 0.5), l_copysign(m, of.rest, x)));
  return l_select(m, of.beyond, outer, l_sub(m, pi_high(m, 0.5), inner));
}

/* Beyond 1: pi / 2 - atan(1 / a). */
ts_v ts_vm_atan(ts_vm *m, ts_v x) {
  if (!m->fma) return ts_vm_library(m, "atan", "u10", x, NULL);
  ts_v a = l_abs(m, x), one = l_const(m, 1), steep = l_cmp(m, LLVMRealOGT, a, one);
  ts_v t = l_select(m, steep, l_div(m, l_const(m, -1), a), a), z = l_mul(m, t, t);
  ts_v p = m->wide ? L_POLY(m, z, atan_wide) : L_POLY(m, z, atan_single);
  ts_v rest = l_mul(m, l_mul(m, t, z), p), flat = l_add(m, t, rest);
  ts_v sum = l_add(m, pi_high(m, 0.5), l_add(m, t, l_add(m, rest, pi_low(m, 0.5))));
  return l_copysign(m, l_select(m, steep, sum, flat), x);
}

/* atan(t) / t in powers of t^2, 0 <= t <= 1. Relative error 2^-31. */
static const double atan_narrow[] = {0.9999999995535,  -0.3333332248891,   0.1999955810036,  -0.1427857602481,
                                     0.1105077127585,  -0.08785043282363,  0.06685281517877, -0.04392841073327,
                                     0.02191294586545, -0.007030669470424, 0.001057607438057};

/* For f32 in f64 lanes without FMA, where the quotient is accurate enough. The bound turns 0 / 0 into 0; two infinities
 * count as equal. */
static ts_v atan2_narrow(ts_vm *m, ts_v y, ts_v x) {
  ts_vm wide = ts_vm_begin(m->e, true, m->lanes);
  ts_v a = l_widen(&wide, l_abs(m, y)), b = l_widen(&wide, l_abs(m, x));
  ts_v steep = l_cmp(&wide, LLVMRealOGT, a, b);
  ts_v low = l_select(&wide, steep, b, a), high = l_at_least(&wide, l_select(&wide, steep, a, b), 0x1p-200);
  ts_v equal = l_cmp(&wide, LLVMRealOEQ, low, high);
  ts_v t = l_select(&wide, equal, l_const(&wide, 1), l_div(&wide, low, high));
  ts_v angle = l_mul(&wide, t, L_POLY(&wide, l_mul(&wide, t, t), atan_narrow));
  angle = l_select(&wide, steep, l_sub(&wide, l_const(&wide, L_PI / 2), angle), angle);
  ts_v behind = LLVMBuildICmp(m->b, LLVMIntSLT, l_bits(m, x), l_int(m, 0), ""); /* -0, too */
  angle = l_select(&wide, behind, l_sub(&wide, l_const(&wide, L_PI), angle), angle);
  return l_copysign(m, l_narrow(m, angle), y);
}

/* What the quotient t of low / high lacks, as an angle: the remainder is exact, and 1 - t^2/2 is near the derivative of
 * the angle. There is no remainder where an operand is infinite. */
static ts_v atan2_lacks(ts_vm *m, ts_v t, ts_v z, ts_v low, ts_v high) {
  ts_v remainder = l_fma(m, l_neg(m, t), high, low);
  remainder = l_select(m, l_cmp(m, LLVMRealORD, remainder, remainder), remainder, l_const(m, 0));
  return l_mul(m, l_div(m, remainder, high), l_fma(m, z, l_const(m, -0.5), l_const(m, 1)));
}

/* t = atan(low / high). The angle is t, pi / 2 - t where |y| > |x|, pi - t where x is negative, and pi / 2 + t where
 * both hold. The bound turns 0 / 0 into 0; two infinities count as equal. What the quotient and the sum with
 * a part of pi lack is added to the smaller terms. */
static ts_v atan2_by_fma(ts_vm *m, ts_v y, ts_v x) {
  ts_v a = l_abs(m, y), b = l_abs(m, x), steep = l_cmp(m, LLVMRealOGT, a, b);
  ts_v low = l_select(m, steep, b, a), high = l_at_least(m, l_select(m, steep, a, b), m->wide ? 0x1p-1074 : 0x1p-149);
  ts_v t = l_select(m, l_cmp(m, LLVMRealOEQ, low, high), l_const(m, 1), l_div(m, low, high)), z = l_mul(m, t, t);
  ts_v behind = LLVMBuildICmp(m->b, LLVMIntSLT, l_bits(m, x), l_int(m, 0), ""); /* -0, too */
  ts_v minus = LLVMBuildXor(m->b, steep, behind, ""), zero = l_const(m, 0);
  ts_v lacks = atan2_lacks(m, t, z, low, high);
  t = l_select(m, minus, l_neg(m, t), t);
  lacks = l_select(m, minus, l_neg(m, lacks), lacks);
  ts_v whole = l_select(m, behind, pi_high(m, 1), zero), whole_low = l_select(m, behind, pi_low(m, 1), zero);
  whole = l_select(m, steep, pi_high(m, 0.5), whole), whole_low = l_select(m, steep, pi_low(m, 0.5), whole_low);
  ts_v p = m->wide ? L_POLY(m, z, atan_wide) : L_POLY(m, z, atan_single);
  ts_v sum = l_add(m, whole, t), rest = l_fma(m, l_mul(m, t, z), p, whole_low);
  rest = l_add(m, rest, l_sub(m, t, l_sub(m, sum, whole)));
  rest = l_add(m, rest, lacks);
  return l_copysign(m, l_add(m, sum, rest), y);
}

ts_v ts_vm_atan2(ts_vm *m, ts_v y, ts_v x) {
  if (m->fma) return atan2_by_fma(m, y, x);
  return m->wide ? ts_vm_library(m, "atan2", "u10", y, x) : atan2_narrow(m, y, x);
}
