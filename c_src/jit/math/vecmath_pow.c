/* Powers: x^y = 2^(y log2 x), with log2 x as a sum of two floats. x = 2^k m, 3/4 <= m < 3/2 nearly, and a table has a
 * number c near 1 / m, of so few digits that r = c m - 1 is exact: log2 x = k - log2 c + (r - r^2 / 2 + r^3 Q(r)) /
 * ln 2. k - log2 c and r - r^2 / 2 have twice the digits. c is 1 next to 1, where the result is small. So the relative
 * error of the logarithm is 2^-31 (f32) or 2^-62 (f64). The exponent is at most 128 (1074), and its error is about half
 * a last place of the result. */
#include "jit/math/vecmath.h"

/* 8 or 16 intervals of m; the first begins at 3/4, half an interval below it. */
enum { TABLE_NARROW = 8, TABLE_WIDE = 16 };
static const double inverse_narrow[] = {1.3125, 1.25, 1.125, 1.0625, 1, 0.875, 0.8125, 0.71875};
static const double inverse_wide[] = {1.34375, 1.28125, 1.21875,  1.1875,  1.15625,  1.09375,  1.0625,  1.03125,
                                      1,       0.9375,  0.890625, 0.84375, 0.796875, 0.765625, 0.71875, 0.6875};
/* -log2 c in two parts: adding k to the first is exact. */
static const double log_high_narrow[] = {-0.392333984375, -0.3218994140625, -0.169921875,   -0.08746337890625, 0,
                                         0.192626953125,  0.299560546875,   0.4764404296875};
static const double log_low_narrow[] = {
    1.6561596567044035e-05, -2.8680824470939115e-05, -3.1264423796528718e-06, 5.3765592156196362e-07, 0,
    1.8124817870557308e-05, -2.6501609795559489e-07, -2.3857444375607884e-06};
static const double log_high_wide[] = {-0.42626476287841797,  -0.35755157470703125,  -0.28540229797363281,
                                       -0.24792766571044922,  -0.20945358276367188,  -0.12928295135498047,
                                       -0.087462425231933594, -0.044394493103027344, 0,
                                       0.093109130859375,     0.16711044311523438,   0.24511241912841797,
                                       0.32757472991943359,   0.38529014587402344,   0.47643756866455078,
                                       0.54056835174560547};
static const double log_low_wide[] = {8.1763200298658583e-09,  -4.2991105244316596e-07, 7.9111384470649453e-08,
                                      1.5226686372495647e-07,  2.1713472209314219e-07,  -6.5589985986562295e-08,
                                      -4.1601840581450405e-07, 3.737445739060969e-07,   0,
                                      2.7353210647067594e-07,  -4.5727997605024726e-07, 7.8708113486888784e-08,
                                      -7.1890929183457806e-08, 1.0010768347616061e-08,  4.7527843634645585e-07,
                                      2.9617097275050637e-08};

/* 1 / ln 2 in two parts. */
static const double first_narrow[] = {1.4426950216293335, 1.9259630335000111e-08};
static const double first_wide[] = {1.4426950408889634, 2.0355273740931033e-17};

/* Q(r) / ln 2, |r| <= 0.0704 (f32), 0.0342 (f64). Relative error of the logarithm 2^-35, 2^-67. */
static const double log2_narrow[] = {0.48089835, -0.360671461, 0.288534731, -0.241787195, 0.207594141};
static const double log2_wide[] = {0.48089834696298789,  -0.3606737602222253,  0.28853900817672429,
                                   -0.24044917360021786, 0.2060992953354979,   -0.18033657596371397,
                                   0.16029433929701331,  -0.14459053073233208, 0.13358861532274813};

/* 2^r = 1 + r P(r), |r| <= 0.502. Relative error 2^-27.7 (f32), 2^-56.2 (f64). */
static const double exp2_narrow[] = {0.693147182,   0.240226507,   0.055503659,
                                     0.00961807277, 0.00133881764, 0.000154583875};
static const double exp2_wide[] = {0.69314718055994529,    0.24022650695910069,   0.055504108664823401,
                                   0.0096181291076194424,  0.0013333558146057171, 0.0001540353042593457,
                                   1.5252734122929246e-05, 1.3215450214257e-06,   1.0177956753220032e-07,
                                   7.0713342251481492e-09, 4.4689781017838656e-10};

/* log(1 + f) = f - f^2 / 2 + f^3 P(f), without FMA. Relative error 2^-38. */
static const double log_power[] = {0.33333333347899147,  -0.249999987167721,  0.19999994669013527,
                                   -0.16666797312303577, 0.14286278131441132, -0.12495994321765913,
                                   0.11088705283434504,  -0.1002962314181649, 0.0944015667702658,
                                   -0.08762756705297416, 0.06303778342145369, -0.02274393310623918};

typedef struct pair {
  ts_v high, low;
} pair;

static ts_v table(ts_vm *m, ts_v index, const double *narrow, const double *wide) {
  return m->wide ? ts_vm_table(m, index, wide, TABLE_WIDE) : ts_vm_table(m, index, narrow, TABLE_NARROW);
}

/* r, and k - log2 c in two parts, of a positive normal number. `lowered` is subtracted from k if it is not NULL. */
static ts_v reduce(ts_vm *m, ts_v a, ts_v lowered, pair *whole) {
  const int64_t one = m->wide ? (int64_t)1023 << 52 : 127 << 23, octave = m->wide ? (int64_t)1 << 52 : 1 << 23;
  const int64_t step = octave / (m->wide ? TABLE_WIDE : TABLE_NARROW);
  ts_v bits = l_bits(m, a), width = l_int(m, m->wide ? 52 : 23);
  ts_v shifted = LLVMBuildAdd(m->b, bits, l_int(m, octave / 2 + step / 2), "");
  ts_v biased = LLVMBuildLShr(m->b, shifted, width, "");
  ts_v index = LLVMBuildLShr(m->b, shifted, l_int(m, m->wide ? 48 : 20), "");
  ts_v power = LLVMBuildAnd(m->b, shifted, l_int(m, -octave), "");
  ts_v mantissa = l_float(m, LLVMBuildAdd(m->b, LLVMBuildSub(m->b, bits, power, ""), l_int(m, one), ""));
  /* An integer below 2^23 (2^52), placed in the low bits of that float. */
  ts_v magic = l_const(m, m->wide ? 0x1p52 : 0x1p23);
  ts_v k = l_float(m, LLVMBuildOr(m->b, biased, l_bits(m, magic), ""));
  k = l_sub(m, k, l_const(m, m->wide ? 0x1p52 + 1023 : 0x1p23 + 127));
  if (lowered) k = l_sub(m, k, lowered);
  whole->high = l_add(m, k, table(m, index, log_high_narrow, log_high_wide));
  whole->low = table(m, index, log_low_narrow, log_low_wide);
  return l_fma(m, mantissa, table(m, index, inverse_narrow, inverse_wide), l_const(m, -1));
}

/* The base-2 logarithm of a positive normal number. */
static pair log2_pair(ts_vm *m, ts_v a, ts_v lowered) {
  pair whole;
  ts_v r = reduce(m, a, lowered, &whole), minus_half = l_const(m, -0.5);
  const double *first = m->wide ? first_wide : first_narrow;
  ts_v first_high = l_const(m, first[0]), first_low = l_const(m, first[1]);
  ts_v square = l_mul(m, r, r), square_low = l_fma(m, r, r, l_neg(m, square));
  ts_v t = l_fma(m, square, minus_half, r), t_low = l_fma(m, square, minus_half, l_sub(m, r, t));
  t_low = l_fma(m, square_low, minus_half, t_low);
  ts_v high = l_mul(m, t, first_high), low = l_fma(m, t, first_high, l_neg(m, high));
  low = l_fma(m, t_low, first_high, l_fma(m, t, first_low, low));
  ts_v q = m->wide ? L_POLY_IN_TWO(m, r, square, log2_wide) : L_POLY(m, r, log2_narrow);
  low = l_fma(m, l_mul(m, square, r), q, low);
  ts_v sum = l_add(m, whole.high, high); /* whole.high is 0 or larger than high */
  low = l_add(m, low, l_add(m, l_add(m, l_sub(m, whole.high, sum), high), whole.low));
  return (pair){sum, low};
}

/* y log2 a for a positive normal number. The low part is up to 2^-8 of the high one. */
static pair exponent_of(ts_vm *m, ts_v a, ts_v y, ts_v lowered) {
  pair log = log2_pair(m, a, lowered);
  ts_v high = l_mul(m, y, log.high);
  return (pair){high, l_fma(m, y, log.low, l_fma(m, y, log.high, l_neg(m, high)))};
}

/* 2^r */
static ts_v exp2_poly(ts_vm *m, ts_v r) {
  ts_v p = m->wide ? L_POLY_IN_TWO(m, r, l_mul(m, r, r), exp2_wide) : L_POLY(m, r, exp2_narrow);
  return l_fma(m, r, p, l_const(m, 1));
}

/* a^y for a positive normal number, if the result is one. Adding the magic number leaves n, the integer nearest to
 * `exponent`, in the low bits. */
static ts_v normal_power(ts_vm *m, pair of, ts_v exponent) {
  ts_v magic = ts_vm_magic(m), shifted = l_add(m, exponent, magic), n = l_sub(m, shifted, magic);
  ts_v r = l_add(m, l_sub(m, of.high, n), of.low);
  return ts_vm_scale_normal(m, exp2_poly(m, r), shifted);
}

/* The same for any positive finite number and a finite y. Beyond the bounds of the exponent the result is 0 or
 * infinity; there the low part is anything. */
static ts_v power_of_positive(ts_vm *m, ts_v a, ts_v y) {
  ts_v is_small = l_cmp(m, LLVMRealOLT, a, l_const(m, m->wide ? 0x1p-1022 : 0x1p-126)), magic = ts_vm_magic(m);
  ts_v scaled = l_select(m, is_small, l_mul(m, a, l_const(m, m->wide ? 0x1p53 : 0x1p24)), a);
  ts_v lowered = l_select(m, is_small, l_const(m, m->wide ? 53 : 24), l_const(m, 0));
  pair of = exponent_of(m, scaled, y, lowered);
  double limit = m->wide ? 1100 : 160;
  of.high = l_within(m, of.high, -limit, limit);
  ts_v shifted = l_add(m, l_add(m, of.high, l_within(m, of.low, -4, 4)), magic), n = l_sub(m, shifted, magic);
  ts_v r = l_within(m, l_add(m, l_sub(m, of.high, n), of.low), -1, 1);
  return ts_vm_scale(m, exp2_poly(m, r), n, shifted);
}

/* ---- without FMA ---- */

/* exp(y log a) in f64 lanes: the logarithm to 2^-38, so that the exponent, at most 104, is known to 2^-31. */
static ts_v power_in_f64(ts_vm *m, ts_v a, ts_v y) {
  ts_vm wide = ts_vm_begin(m->e, true, m->lanes);
  ts_vm_parts of = ts_vm_split(&wide, l_widen(&wide, a));
  ts_v exponent = l_mul(&wide, l_widen(&wide, y), ts_vm_log_by(&wide, of, L_POLY(&wide, of.f, log_power)));
  exponent = l_at_least(&wide, l_at_most(&wide, exponent, 90), -110);
  return l_narrow(m, ts_vm_exp_of_negative(&wide, exponent));
}

static ts_v power_by_library(ts_vm *m, ts_v x, ts_v y) { return ts_vm_library(m, "pow", "u10", x, y); }

/* The library's f64 pow overflows at exp(709.78271): results that are infinite are recomputed, with the right sign. */
static ts_v power_by_square(ts_vm *m, ts_v x, ts_v y) {
  ts_v root = power_by_library(m, l_abs(m, x), l_mul(m, y, l_const(m, 0.5)));
  return l_copysign(m, l_mul(m, root, root), power_by_library(m, x, y));
}

static ts_v wide_power_by_library(ts_vm *m, ts_v x, ts_v y) {
  ts_v out = power_by_library(m, x, y);
  ts_v overflow = l_cmp(m, LLVMRealOEQ, l_abs(m, out), l_const(m, __builtin_inf()));
  ts_v halves = l_cmp(m, LLVMRealOGE, l_abs(m, y), l_const(m, 0.5)); /* half the least number would be 0 */
  overflow = LLVMBuildAnd(m->b, overflow, halves, "");
  return l_rarely(m, overflow, out, power_by_square, x, y);
}

/* ---- all numbers ---- */

/* `power` of |x|, with the sign that x has: negative numbers have powers with integers. */
static ts_v with_sign(ts_vm *m, ts_v power, ts_v x, ts_v y) {
  ts_v half = l_mul(m, y, l_const(m, 0.5)), positive = l_cmp(m, LLVMRealOGT, x, l_const(m, 0));
  ts_v is_integer = l_cmp(m, LLVMRealOEQ, l_intrinsic(m, "llvm.trunc", &y, 1), y);
  ts_v is_even = l_cmp(m, LLVMRealOEQ, l_intrinsic(m, "llvm.trunc", &half, 1), half);
  ts_v out = l_select(m, LLVMBuildOr(m->b, positive, is_even, ""), power, l_neg(m, power));
  return l_select(m, LLVMBuildOr(m->b, positive, is_integer, ""), out, l_const(m, __builtin_nan("")));
}

static ts_v is_finite(ts_vm *m, ts_v x) { return l_cmp(m, LLVMRealOLT, l_abs(m, x), l_const(m, __builtin_inf())); }

/* `power` of |x| for all x and y. The library has the powers of 0, infinities and NaN. */
static ts_v power_of_signed(ts_vm *m, ts_v power, ts_v x, ts_v y) {
  ts_v finite = LLVMBuildAnd(m->b, is_finite(m, x), is_finite(m, y), "");
  ts_v numbers = LLVMBuildAnd(m->b, finite, l_cmp(m, LLVMRealUNE, x, l_const(m, 0)), "");
  return l_rarely(m, LLVMBuildNot(m->b, numbers, ""), with_sign(m, power, x, y), power_by_library, x, y);
}

static ts_v without_fma(ts_vm *m, ts_v x, ts_v y) {
  if (m->wide) return wide_power_by_library(m, x, y);
  ts_v power = power_in_f64(m, l_abs(m, x), y), finite = LLVMBuildAnd(m->b, is_finite(m, x), is_finite(m, y), "");
  ts_v usual = LLVMBuildAnd(m->b, finite, l_cmp(m, LLVMRealOGT, x, l_const(m, 0)), "");
  l_branch branch = l_branch_begin(m, LLVMBuildNot(m->b, usual, ""), false);
  ts_v out = power_of_signed(m, power, x, y);
  l_branch_end(m, &branch);
  return l_branch_merge(m, &branch, power, out);
}

/* Of a float's bits: positive, and neither subnormal nor infinite nor NaN. */
static ts_v is_normal(ts_vm *m, ts_v bits) {
  const int64_t least = m->wide ? (int64_t)1 << 52 : 1 << 23, count = m->wide ? 2046 : 254;
  ts_v offset = LLVMBuildSub(m->b, bits, l_int(m, least), "");
  return LLVMBuildICmp(m->b, LLVMIntULT, offset, l_int(m, count * least), "");
}

/* First as if |x| and the result were normal numbers. */
static ts_v any_power(ts_vm *m, ts_v x, ts_v y) {
  if (!m->fma) return without_fma(m, x, y);
  ts_v a = l_abs(m, x);
  pair of = exponent_of(m, a, y, NULL);
  ts_v exponent = l_add(m, of.high, of.low), power = normal_power(m, of, exponent);
  ts_v bounded = l_cmp(m, LLVMRealOLT, l_abs(m, exponent), l_const(m, m->wide ? 1021 : 125));
  ts_v usual = LLVMBuildAnd(m->b, bounded, is_normal(m, l_bits(m, x)), "");
  l_branch branch = l_branch_begin(m, LLVMBuildNot(m->b, usual, ""), false);
  ts_v normal = LLVMBuildAnd(m->b, bounded, is_normal(m, l_bits(m, a)), "");
  ts_v out = l_rarely(m, LLVMBuildNot(m->b, normal, ""), power, power_of_positive, a, y);
  out = power_of_signed(m, out, x, y);
  l_branch_end(m, &branch);
  return l_branch_merge(m, &branch, power, out);
}

static const double known_exponents[] = {0, 1, 2, 3, -1, 0.5};
enum { KNOWN_EXPONENTS = sizeof known_exponents / sizeof *known_exponents };

/* Common exponents give the bits of the equivalent ops: pass/simplify_arithmetic.c replaces pow by these ops if the
 * exponent is a constant. The other lanes are set in `*others`. */
static ts_v known_power(ts_vm *m, ts_v x, ts_v y, ts_v *others) {
  ts_v one = l_const(m, 1), infinity = l_const(m, __builtin_inf()), square = l_mul(m, x, x);
  ts_v root = l_sqrt(m, l_add(m, x, l_const(m, 0)));
  root = l_select(m, l_cmp(m, LLVMRealOEQ, x, l_const(m, -__builtin_inf())), infinity, root);
  const ts_v powers[KNOWN_EXPONENTS] = {one, x, square, l_mul(m, square, x), l_div(m, one, x), root};
  ts_v out = x;
  for (int i = 0; i < KNOWN_EXPONENTS; i++) {
    ts_v differs = l_cmp(m, LLVMRealUNE, y, l_const(m, known_exponents[i]));
    out = l_select(m, differs, out, powers[i]);
    *others = i ? LLVMBuildAnd(m->b, *others, differs, "") : differs;
  }
  return out;
}

/* Halves of integers, from -3 to 3: a test of fewer instructions than one for each exponent. */
static ts_v may_be_known(ts_vm *m, ts_v y) {
  ts_v magic = ts_vm_magic(m), twice = l_add(m, y, y);
  ts_v rounded = l_sub(m, l_add(m, twice, magic), magic);
  ts_v is_small = l_cmp(m, LLVMRealOLE, l_abs(m, y), l_const(m, 3));
  return LLVMBuildAnd(m->b, l_cmp(m, LLVMRealOEQ, rounded, twice), is_small, "");
}

ts_v ts_vm_pow(ts_vm *m, ts_v x, ts_v y) {
  l_branch known = l_branch_begin(m, may_be_known(m, y), true);
  ts_v others = NULL, out = known_power(m, x, y, &others);
  l_branch_end(m, &known);
  out = l_branch_merge(m, &known, x, out);
  others = l_branch_merge(m, &known, LLVMConstAllOnes(LLVMTypeOf(others)), others);
  l_branch unknown = l_branch_begin(m, others, true);
  ts_v mixed = l_select(m, others, any_power(m, x, y), out);
  l_branch_end(m, &unknown);
  return l_branch_merge(m, &unknown, out, mixed);
}
