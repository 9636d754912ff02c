/* Powers: x^y = 2^(y log2 x), with log2 x as a sum of two floats. With x = 2^k (1 + f), 3/4 <= 1 + f < 3/2, and
 * s = f / (2 + f), z = s^2: log2 x = k + s (2 / ln 2) (1 + z / 3 + z^2 Q(z)). All factors before Q have twice the
 * digits. So the relative error of the logarithm is 2^-33 (f32) or 2^-64 (f64). The exponent is at most 128 (1074), and
 * its error is below half a last place of the result. */
#include "jit/math/vecmath.h"

/* 2 / ln 2 and 2 / (3 ln 2) in two parts. */
static const double first_narrow[] = {2.88539004, 3.85192607e-08}, third_narrow[] = {0.961796701, -7.02846181e-09};
static const double first_wide[] = {2.8853900817779268, 4.0710547481862066e-17},
                    third_wide[] = {0.96179669392597555, 5.0577616648125907e-17};

/* Q(z) times 2 / ln 2, z <= 0.0401. Relative error of the logarithm 2^-34.5 (f32), 2^-69 (f64). */
static const double log2_narrow[] = {0.577083707, 0.411534131, 0.344475269};
static const double log2_wide[] = {0.57707801635558131, 0.41219858311331464, 0.32059889752198151, 0.2623082380848657,
                                   0.22195004230294252, 0.19247286944693467, 0.16722976153400471, 0.18144523615508443};

/* 2^r = 1 + r P(r), |r| <= 0.502. Relative error 2^-27.7 (f32), 2^-56.2 (f64). */
static const double exp2_narrow[] = {
    1, 0.693147182, 0.240226507, 0.055503659, 0.00961807277, 0.00133881764, 0.000154583875};
static const double exp2_wide[] = {1,
                                   0.69314718055994529,
                                   0.24022650695910069,
                                   0.055504108664823401,
                                   0.0096181291076194424,
                                   0.0013333558146057171,
                                   0.0001540353042593457,
                                   1.5252734122929246e-05,
                                   1.3215450214257e-06,
                                   1.0177956753220032e-07,
                                   7.0713342251481492e-09,
                                   4.4689781017838656e-10};

/* log(1 + f) = f - f^2 / 2 + f^3 P(f), without FMA. Relative error 2^-38. */
static const double log_power[] = {0.33333333347899147,  -0.249999987167721,  0.19999994669013527,
                                   -0.16666797312303577, 0.14286278131441132, -0.12495994321765913,
                                   0.11088705283434504,  -0.1002962314181649, 0.0944015667702658,
                                   -0.08762756705297416, 0.06303778342145369, -0.02274393310623918};

typedef struct pair {
  ts_v high, low;
} pair;

/* a + b for |a| > |b|, without rounding, and `low` with it. */
static pair add_smaller(ts_vm *m, ts_v a, ts_v b, ts_v low) {
  ts_v high = l_add(m, a, b);
  ts_v lost = l_add(m, l_sub(m, a, high), b);
  return (pair){high, low ? l_add(m, lost, low) : lost};
}

/* a * b, and `low` with what its rounding loses. */
static pair multiply(ts_vm *m, ts_v a, ts_v b, ts_v low) {
  ts_v high = l_mul(m, a, b);
  ts_v lost = l_fma(m, a, b, l_neg(m, high));
  return (pair){high, low ? l_add(m, lost, low) : lost};
}

static pair multiply_pairs(ts_vm *m, pair a, pair b) {
  ts_v cross = l_fma(m, a.high, b.low, l_mul(m, a.low, b.high));
  return multiply(m, a.high, b.high, cross);
}

/* a[0] + a[1] + b, b below a[0]. */
static pair add_constant(ts_vm *m, const double a[2], pair b) {
  ts_v low = l_const(m, a[1]);
  return add_smaller(m, l_const(m, a[0]), b.high, b.low ? l_add(m, b.low, low) : low);
}

/* f / (2 + f), whose denominator has a low part, too. */
static pair half_tangent(ts_vm *m, ts_v f) {
  pair sum = add_smaller(m, l_const(m, 2), f, NULL);
  ts_v inverse = l_div(m, l_const(m, 1), sum.high), s = l_mul(m, f, inverse);
  ts_v rest = l_fma(m, l_neg(m, s), sum.low, l_fma(m, l_neg(m, s), sum.high, f));
  return (pair){s, l_mul(m, rest, inverse)};
}

static ts_vm_parts split(ts_vm *m, ts_v a) {
  if (m->e->target->isa == TS_ISA_AVX512) return ts_vm_split_avx512(m, a);
  ts_v is_small = l_cmp(m, LLVMRealOLT, a, l_const(m, m->wide ? 0x1p-1022 : 0x1p-126)), zero = l_const(m, 0);
  ts_v scaled = l_mul(m, a, l_const(m, m->wide ? 0x1p53 : 0x1p24));
  ts_vm_parts out = ts_vm_split(m, l_select(m, is_small, scaled, a));
  out.k = l_sub(m, out.k, l_select(m, is_small, l_const(m, m->wide ? 53 : 24), zero));
  return out;
}

/* The base-2 logarithm of a positive finite number. */
static pair log2_pair(ts_vm *m, ts_v a) {
  ts_vm_parts x = split(m, a);
  pair s = half_tangent(m, x.f), z = multiply_pairs(m, s, s);
  ts_v q = m->wide ? L_POLY(m, z.high, log2_wide) : L_POLY(m, z.high, log2_narrow);
  pair third = add_constant(m, m->wide ? third_wide : third_narrow, (pair){l_mul(m, q, z.high), NULL});
  pair factor = add_constant(m, m->wide ? first_wide : first_narrow, multiply_pairs(m, z, third));
  pair log = multiply_pairs(m, s, factor);
  return add_smaller(m, x.k, log.high, log.low); /* k is 0 or larger than log.high */
}

/* a^y for a positive finite number a and a finite y. Beyond the bounds of the exponent the result is 0 or infinity;
 * there the low part is anything. */
static ts_v power_of_positive(ts_vm *m, ts_v a, ts_v y) {
  pair log = log2_pair(m, a), exponent = multiply(m, y, log.high, l_mul(m, y, log.low));
  double limit = m->wide ? 1100 : 160;
  ts_v bounded = l_within(m, exponent.high, -limit, limit), magic = ts_vm_magic(m);
  ts_v shifted = l_add(m, bounded, magic), n = l_sub(m, shifted, magic);
  ts_v r = l_within(m, l_add(m, l_sub(m, bounded, n), exponent.low), -1, 1);
  return ts_vm_scale(m, m->wide ? L_POLY(m, r, exp2_wide) : L_POLY(m, r, exp2_narrow), n, shifted);
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

/* The library has the powers of 0, infinities and NaN. */
static ts_v any_power(ts_vm *m, ts_v x, ts_v y) {
  if (m->wide && !m->fma) return wide_power_by_library(m, x, y);
  ts_v a = l_abs(m, x), power = m->fma ? power_of_positive(m, a, y) : power_in_f64(m, a, y);
  ts_v finite = LLVMBuildAnd(m->b, is_finite(m, x), is_finite(m, y), "");
  ts_v usual = LLVMBuildAnd(m->b, finite, l_cmp(m, LLVMRealOGT, x, l_const(m, 0)), "");
  l_branch branch = l_branch_begin(m, LLVMBuildNot(m->b, usual, ""), false);
  ts_v numbers = LLVMBuildAnd(m->b, finite, l_cmp(m, LLVMRealUNE, x, l_const(m, 0)), "");
  ts_v out = l_rarely(m, LLVMBuildNot(m->b, numbers, ""), with_sign(m, power, x, y), power_by_library, x, y);
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
