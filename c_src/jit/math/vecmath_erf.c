/* The error function, its complement and its inverse. Where f32 arithmetic cannot meet the error bound, f32 is computed
 * in f64 lanes with short polynomials. */
#include "jit/math/vecmath.h"

#define HALF_ROOT_PI 0.88622692545275801365

/* erf(x) = x + x P(x^2), |x| <= 1. Relative error 2^-29.4. */
static const double erf_small[] = {0.128379166,  -0.37612626,    0.112835787,   -0.0268533472,
                                   0.0051871622, -0.00079978531, 7.80690534e-05};
/* erfc(x) = ERFC_CENTER + t P(t), t = x - CENTER, 0.4769 <= x <= 1. Relative error 2^-28.7. */
#define CENTER 0.752942622
#define ERFC_CENTER 0.286956638
static const double erfc_near[] = {-0.640093923, 0.481953889,  -0.0285575576, -0.14988929,
                                   0.0536831245, 0.0262079258, -0.0178221744};
/* erfc(x) = exp(P(x)), 1 <= x <= 3.925. Absolute error of erfc 2^-25.9. */
static const double erfc_exponent[] = {-0.00267170393, -1.11743844,  -0.65448904,
                                       -0.088634111,   0.0147781027, -0.00115041982};
/* erf(a) for a < 3.926 in 8 intervals around multiples of ERF_WIDTH: erf(center) + t P(t), t = a - center, where
 * erf(center) is nearly a float; in the first interval a + a P(a). Error 2^-27.6 of the result or less. */
#define ERF_WIDTH 0.5234
enum { ERF_INTERVALS = 8, ERF_TERMS = 7 };
static const double erf_center[] = {0,          0.523419082, 1.04683423, 1.57021034,
                                    2.09367537, 2.61694908,  3.14049053, 3.65332246};
static const double erf_at_center[] = {0,           0.540837348, 0.861246049, 0.973622799,
                                       0.996932626, 0.999785185, 0.999991059, 0.999999762};
static const double erf_terms[ERF_TERMS][ERF_INTERVALS] = {
    {0.128379166, 0.857970774, 0.377162308, 0.0958684534, 0.0140843038, 0.0011973551, 5.87688301e-05, 1.80314942e-06},
    {2.34931761e-07, -0.449077874, -0.39482671, -0.150533721, -0.0294878725, -0.00313339662, -0.00018456894,
     -6.58846102e-06},
    {-0.376136184, -0.129290774, 0.149824232, 0.125623941, 0.0364639796, 0.00506753335, 0.000366827502, 1.54408681e-05},
    {0.000149410407, 0.183486179, 0.0532153584, -0.0484428294, -0.0283502284, -0.00558723882, -0.000513930689,
     -2.59220651e-05},
    {0.111827664, 0.000493892876, -0.0672111586, -0.00727406796, 0.0127995517, 0.00432822481, 0.000536003849,
     3.34426768e-05},
    {0.00297861523, -0.0478300489, 0.00857398473, 0.01654258, -0.00118167978, -0.00227162964, -0.000438214862,
     -3.60316008e-05},
    {-0.0295818597, 0.00595713826, 0.0130622778, -0.00549105043, -0.00226918957, 0.000656635326, 0.000257188949,
     2.726811e-05}};
/* erfc(x) = exp(-x^2) / (1 + 2 x) P((x - 3) / (x + 3)), 0 <= x <= 10.1. Relative error 2^-29. */
static const double erfc_short[] = {1.2530080591222885,      -0.13562113929921418,   -0.047562399458599046,
                                    0.12964641457193748,     -0.1192709751302227,    0.068295767046454459,
                                    -0.023797531049731844,   0.0025673781034563992,  0.0020018136140057025,
                                    -0.00077758328154754514, -0.00026812811026901979};
/* erf_inv(x) = x P(w - 5 / 2), w = -log(1 - x^2) <= 5. Relative error 2^-28.7. */
static const double erf_inv_central[] = {1.5014093535143296,      0.24664028763492327,    -0.0041773394050917227,
                                         -0.0012527446624663501,  0.00021828263060918706, -4.9619104925314389e-06,
                                         -3.4346111634545929e-06, 4.6589175003464772e-07, 1.8037071323099216e-08,
                                         -8.7727955579162975e-09, 3.3554989546865282e-10};
/* The same around a point where P is nearly a float. Relative error 2^-26.7 (f32), 2^-58.9 (f64). */
#define MIDDLE 0.75258922576904297
static const double erf_inv_central_narrow[] = {1.06635439,     0.245287865,     0.00604528468,   -0.00245111878,
                                                4.9404418e-05,  4.3994376e-05,   -3.37932306e-06, -7.30338002e-07,
                                                1.32454417e-07, -4.45254811e-09, -2.55901217e-10};
#define MIDDLE_WIDE 0.7500000356885721
static const double erf_inv_central_wide[] = {
    1.0657193377655525,      0.24525645927680795,    0.0060643249622998182,   -0.0024513632541192532,
    4.8702737384350007e-05,  4.3770080436945539e-05, -3.0827871146930767e-06, -7.9063102935000408e-07,
    1.0031293153037372e-07,  1.3417673506479498e-08, -2.7800755416287912e-09, -1.9588062729111648e-10,
    7.1067486709991896e-11,  1.7745777342088521e-12, -1.6988729683090377e-12, 2.4997551342092848e-14,
    3.1573351163186254e-14,  3.1736820711549097e-15, -2.8959985537951136e-15, 6.0740263855197381e-16,
    -6.9604657070824698e-17, 4.7704776346827597e-18, -1.8412833341378667e-19, 3.0732585354408802e-21};
/* erf_inv(x) = x P(sqrt(w) - 3), 4.5 <= w <= 16, all that f32 needs. Relative error 2^-27.8. */
static const double erf_inv_tail[] = {2.8329767967408199,     1.0016751332807148,      0.0094456220985454451,
                                      -0.0076404773081006272, 0.0056839763724421044,   -0.0035804040831833883,
                                      0.0014913279639302229,  -9.1726014816809261e-05, -0.00030764274860464437,
                                      0.00014058891554715665, -9.3812854226311312e-06};
/* erf_inv(x) = x P(sqrt(w) - 4), 4.5 <= w <= 37. Relative error 2^-25.0, to start an iteration. */
static const double erf_inv_far[] = {3.839783861638685,       1.009492638768501,       0.0012581360633823853,
                                     -0.00086414715979230797, 0.00032791052272446175,  -0.00012933352674776122,
                                     4.5755748169497497e-05,  -2.0175075754899125e-05, 2.4684264593639092e-05,
                                     -1.58542106904703e-05,   1.6965702005797177e-06,  1.6284500686841422e-06,
                                     -4.1582955028966477e-07};

/* The same as erf_small for f64. Relative error 2^-56. */
static const double erf_small_wide[] = {0.12837916709551256,     -0.37612638903183371,    0.11283791670938845,
                                        -0.026866170642322159,   0.00522397760002091,     -0.00085483256522152023,
                                        0.00012055285689476465,  -1.4924567681422755e-05, 1.6445424659975427e-06,
                                        -1.6193787069152774e-07, 1.3658983430113034e-08,  -7.6862174651784974e-10};
/* The same as erfc_near for f64, 0.46 <= x <= 1. Relative error 2^-56.8. */
#define CENTER_WIDE 0.75290000000027602
#define ERFC_CENTER_WIDE 0.28698392086936225
static const double erfc_near_wide[] = {-0.64013500960678493,    0.48195764873312524,     -0.028532272618554809,
                                        -0.14991157555055523,    0.053707051871639287,    0.026497740376922978,
                                        -0.018487435404810657,   -0.0021982905488534153,  0.0039625654999004669,
                                        -0.00020585222963033419, -0.00062003532333131735, 0.00010867261720229011,
                                        7.2998563373426857e-05,  -2.0319341804292172e-05};
/* erfc(x) = exp(-x^2) / (1 + 2 x) P((x - 3) / (x + 3)), 1 <= x <= 6. Absolute error of erfc 2^-55. */
static const double erfc_absolute[] = {1.2530080582709004,     -0.13562110608671493,   -0.047562294575629362,
                                       0.12964513704551725,    -0.11927402718457507,   0.068304822669055812,
                                       -0.023788058419158948,  0.0024660051682060436,  0.0017349457258924342,
                                       -0.0010262396686093623, -0.00035030293948784069};
/* erfc(x) = exp(-x^2) / (1 + 2 x) P((x - 4) / (x + 4)), 0.46 <= x <= 27.3. The first coefficient has a low part.
 * Relative error 2^-58.4. */
static const double erfc_wide[] = {
    1.2329951186255526,      -0.1396211168405625,     0.015379652102618994,    0.068097054254691258,
    -0.10103906603625107,    0.093732834998401807,    -0.066330365813681499,   0.037167515536452048,
    -0.016197734037321009,   0.0050319699902335157,   -0.00075777345514868686, -0.0001992567874712439,
    0.00015062252093244423,  -2.439874967235733e-05,  -1.1224793643862836e-05, 5.7081781315610427e-06,
    2.9964312631668795e-07,  -8.2199956038725935e-07, 6.6961493770948691e-08,  1.0530766072813801e-07,
    -1.2205148831176287e-08, -1.0372514937297536e-08};
static const double erfc_first_low = -4.3599037455398701e-17;

/* ---- f64 ---- */

/* A quotient P((a - center) / (a + center)) / (1 + 2 a). One division computes both; the remainder of the second
 * corrects it. */
typedef struct quotient {
  ts_v below, below_low; /* 1 + 2 a */
  ts_v inverse;          /* of `below` */
  ts_v inverse_sum;      /* of a + center */
  ts_v t;
} quotient;

static quotient quotient_of(ts_vm *m, ts_v a, double center) {
  ts_v one = l_const(m, 1), twice = l_add(m, a, a), middle = l_const(m, center), sum = l_add(m, a, middle);
  quotient out = {.below = l_add(m, twice, one)};
  /* What the rounding of 1 + 2 a loses. Where 2 a is from 0.92 to 1, half of its last place may remain lost: 2^-53. */
  out.below_low = l_sub(m, one, l_sub(m, out.below, twice));
  ts_v inverse = l_div(m, one, l_mul(m, sum, out.below));
  out.t = l_mul(m, l_mul(m, l_sub(m, a, middle), out.below), inverse);
  out.inverse = l_mul(m, sum, inverse);
  out.inverse_sum = l_mul(m, out.below, inverse);
  return out;
}

/* exp(-a^2) times the quotient of p and p_low. */
static ts_v times_gauss(ts_vm *m, ts_v a, const quotient *of, ts_v p, ts_v p_low) {
  ts_v q = l_mul(m, p, of->inverse), minus_q = l_neg(m, q);
  ts_v rest = l_fma(m, minus_q, of->below_low, l_fma(m, minus_q, of->below, p));
  if (p_low) rest = l_add(m, rest, p_low);
  ts_v square = l_mul(m, a, a), square_low = l_fma(m, a, a, l_neg(m, square));
  return ts_vm_times_exp(m, q, l_mul(m, rest, of->inverse), l_neg(m, square), l_neg(m, square_low));
}

/* 1 <= a <= 6. */
static ts_v erfc_to_last_place_of_1(ts_vm *m, ts_v a) {
  quotient of = quotient_of(m, a, 3);
  return times_gauss(m, a, &of, L_POLY(m, of.t, erfc_absolute), NULL);
}

/* 0.46 <= a <= 27.3, with the part that the rounding of P loses. The remainder of t, (1 - t) a - (1 + t) center,
 * corrects t. */
static ts_v erfc_precise(ts_vm *m, ts_v a) {
  quotient of = quotient_of(m, a, 4);
  ts_v center = l_const(m, 4), remainder = l_sub(m, l_fma(m, l_neg(m, of.t), a, a), l_fma(m, of.t, center, center));
  of.t = l_fma(m, remainder, of.inverse_sum, of.t);
  ts_v first = l_const(m, erfc_wide[0]), low = l_const(m, erfc_first_low);
  ts_v inner = l_poly(m, of.t, erfc_wide + 1, (int)(sizeof(erfc_wide) / sizeof(erfc_wide[0])) - 1);
  ts_v p = l_fma(m, of.t, inner, first);
  return times_gauss(m, a, &of, p, l_add(m, l_fma(m, of.t, inner, l_sub(m, first, p)), low));
}

static ts_v erf_below_1(ts_vm *m, ts_v a) { return l_fma(m, L_POLY(m, l_mul(m, a, a), erf_small_wide), a, a); }

/* `small` below 1 and for NaN, which `large` need not preserve. Arguments are often all below 1, and `large` would take
 * most of the time. */
static ts_v erf_of_parts(ts_vm *m, ts_v x, ts_v small, ts_v (*large)(ts_vm *m, ts_v a)) {
  ts_v a = l_abs(m, x), is_large = l_cmp(m, LLVMRealOGE, a, l_const(m, 1));
  l_branch branch = l_branch_begin(m, is_large, true);
  ts_v mixed = l_select(m, is_large, large(m, a), small);
  l_branch_end(m, &branch);
  return l_copysign(m, l_branch_merge(m, &branch, small, mixed), x);
}

static ts_v large_erf_wide(ts_vm *m, ts_v a) {
  ts_v bounded = l_within(m, a, 1, 6); /* from there erf rounds to 1 */
  return l_sub(m, l_const(m, 1), erfc_to_last_place_of_1(m, bounded));
}

static ts_v erf_wide(ts_vm *m, ts_v x) { return erf_of_parts(m, x, erf_below_1(m, l_abs(m, x)), large_erf_wide); }

static ts_v large_erfc_wide(ts_vm *m, ts_v x) {
  ts_v right = erfc_precise(m, l_within(m, l_abs(m, x), 1, 27.3)); /* from there the result is 0 or 2 */
  return l_select(m, l_cmp(m, LLVMRealOLT, x, l_const(m, 0)), l_sub(m, l_const(m, 2), right), right);
}

/* ---- erf ---- */

static ts_v large_erf(ts_vm *m, ts_v a) {
  ts_v bounded = l_at_most(m, a, 3.925); /* from here erf rounds to 1 */
  return l_sub(m, l_const(m, 1), ts_vm_exp_of_negative(m, L_POLY(m, bounded, erfc_exponent)));
}

/* By tables, without a branch: arguments of layers are on both sides of 1. */
static ts_v erf_by_tables(ts_vm *m, ts_v x) {
  ts_v a = l_abs(m, x), bounded = l_at_most(m, a, 3.925); /* from here erf rounds to 1 */
  ts_v shifted = l_fma(m, bounded, l_const(m, 1 / ERF_WIDTH), ts_vm_magic(m)), index = l_bits(m, shifted);
  ts_v t = l_sub(m, bounded, ts_vm_table(m, index, erf_center, ERF_INTERVALS));
  ts_v p = ts_vm_table(m, index, erf_terms[ERF_TERMS - 1], ERF_INTERVALS);
  for (int i = ERF_TERMS - 2; i >= 0; i--) p = l_fma(m, p, t, ts_vm_table(m, index, erf_terms[i], ERF_INTERVALS));
  ts_v first = LLVMBuildICmp(m->b, LLVMIntEQ, index, l_bits(m, ts_vm_magic(m)), "");
  ts_v base = l_select(m, first, a, ts_vm_table(m, index, erf_at_center, ERF_INTERVALS));
  return l_copysign(m, l_fma(m, p, t, base), x);
}

ts_v ts_vm_erf(ts_vm *m, ts_v x) {
  const ts_isa isa = m->e->target->isa;
  if (m->wide) return m->fma ? erf_wide(m, x) : ts_vm_library(m, "erf", "u10", x, NULL);
  if (isa == TS_ISA_AVX512 || isa == TS_ISA_AVX2) return erf_by_tables(m, x);
  ts_v a = l_abs(m, x), small = l_fma(m, L_POLY(m, l_mul(m, a, a), erf_small), a, a);
  return erf_of_parts(m, x, small, large_erf);
}

/* ---- erfc ---- */

/* For an f32 value in f64 lanes. One division computes both 1 / (1 + 2 a) and (a - 3) / (a + 3). */
static ts_v erfc_of_magnitude(ts_vm *m, ts_v a) {
  ts_v three = l_const(m, 3), minus_square = l_mul(m, l_neg(m, a), a);
  ts_v sum = l_add(m, a, three), double_plus_1 = l_fma(m, a, l_const(m, 2), l_const(m, 1));
  ts_v inverse = l_div(m, l_const(m, 1), l_mul(m, sum, double_plus_1));
  ts_v t = l_mul(m, l_mul(m, l_sub(m, a, three), double_plus_1), inverse);
  ts_v p = l_mul(m, L_POLY(m, t, erfc_short), l_mul(m, sum, inverse));
  return l_mul(m, ts_vm_exp_of_negative(m, minus_square), p);
}

static ts_v large_erfc(ts_vm *m, ts_v x) {
  ts_vm wide = ts_vm_begin(m->e, true, m->lanes);
  ts_v a = l_at_most(m, l_abs(m, x), 10.1); /* from there the result is 0 or 2 */
  ts_v right = erfc_of_magnitude(&wide, l_widen(&wide, a));
  ts_v left = l_sub(&wide, l_const(&wide, 2), right);
  ts_v negative = l_cmp(m, LLVMRealOLT, x, l_const(m, 0));
  return l_narrow(m, l_select(m, negative, left, right));
}

/* It is 1 - x - x P(x^2) where that is more than 1/2, and up to 1 a polynomial of its own. */
static ts_v erfc_below_1(ts_vm *m, ts_v x) {
  ts_v square = l_mul(m, x, x), one = l_const(m, 1), t = l_sub(m, x, l_const(m, m->wide ? CENTER_WIDE : CENTER));
  ts_v p = m->wide ? L_POLY(m, t, erfc_near_wide) : L_POLY(m, t, erfc_near);
  ts_v near = l_fma(m, p, t, l_const(m, m->wide ? ERFC_CENTER_WIDE : ERFC_CENTER));
  p = m->wide ? L_POLY(m, square, erf_small_wide) : L_POLY(m, square, erf_small);
  ts_v small = l_fma(m, l_neg(m, p), x, l_sub(m, one, x));
  return l_select(m, l_cmp(m, LLVMRealOGE, x, l_const(m, m->wide ? 0.46 : 0.4769)), near, small);
}

/* Arguments are often all below 1. */
ts_v ts_vm_erfc(ts_vm *m, ts_v x) {
  if (m->wide && !m->fma) return ts_vm_library(m, "erfc", "u15", x, NULL);
  ts_v small = erfc_below_1(m, x), is_large = l_cmp(m, LLVMRealOGE, l_abs(m, x), l_const(m, 1));
  l_branch branch = l_branch_begin(m, is_large, true);
  ts_v mixed = l_select(m, is_large, m->wide ? large_erfc_wide(m, x) : large_erfc(m, x), small);
  l_branch_end(m, &branch);
  return l_branch_merge(m, &branch, small, mixed);
}

/* ---- erf_inv ---- */

/* From here on P is nearly 2, and x P less: its last place is half of P's. */
#define TAIL 4.6

/* -log(1 - a^2), 0 <= a < 1. */
static ts_v minus_log(ts_vm *m, ts_v a) {
  ts_v one = l_const(m, 1), product = l_mul(m, l_sub(m, one, a), l_add(m, one, a));
  return l_neg(m, m->wide && m->fma ? ts_vm_log_normal(m, product) : ts_vm_log_short(m, product));
}

/* erf_inv(a) of f32 in f64 lanes where w is large. */
static ts_v tail_narrow(ts_vm *m, ts_v a, ts_v y) {
  (void)y;
  ts_vm wide = ts_vm_begin(m->e, true, m->lanes);
  ts_v x = l_widen(&wide, a), root = l_sqrt(&wide, minus_log(&wide, x));
  return l_narrow(m, l_mul(&wide, x, L_POLY(&wide, l_sub(&wide, root, l_const(&wide, 3)), erf_inv_tail)));
}

static ts_v start_tail(ts_vm *m, ts_v w) { return L_POLY(m, l_sub(m, l_sqrt(m, w), l_const(m, 4)), erf_inv_far); }

/* `difference` at y is what erf(y) exceeds a by. One step of Halley's method. */
static ts_v halley(ts_vm *m, ts_v y, ts_v difference) {
  ts_v slope = l_mul(m, ts_vm_exp(m, l_mul(m, y, y)), l_const(m, HALF_ROOT_PI)); /* of the inverse at y */
  ts_v step = l_mul(m, difference, slope);
  return l_sub(m, y, l_div(m, step, l_fma(m, y, step, l_const(m, 1))));
}

/* Where w is large. The difference of erfc preserves the digits of 1 - a. */
static ts_v tail_wide(ts_vm *m, ts_v a, ts_v w) {
  ts_v y = l_mul(m, a, start_tail(m, l_at_least(m, w, TAIL)));
  return halley(m, y, l_sub(m, l_sub(m, l_const(m, 1), a), erfc_precise(m, y)));
}

/* Without FMA the polynomial starts an iteration. */
static ts_v erf_inv_without_fma(ts_vm *m, ts_v a) {
  ts_v w = minus_log(m, a), one = l_const(m, 1), p = L_POLY(m, l_sub(m, w, l_const(m, 2.5)), erf_inv_central);
  p = l_select(m, l_cmp(m, LLVMRealOGT, w, l_const(m, TAIL)), start_tail(m, w), p);
  ts_v y = l_mul(m, a, p), low = l_sub(m, ts_vm_erf(m, y), a);
  ts_v high = l_sub(m, l_sub(m, one, a), ts_vm_erfc(m, y));
  y = halley(m, y, l_select(m, l_cmp(m, LLVMRealOLT, a, l_const(m, 0.5)), low, high));
  ts_v tiny = l_cmp(m, LLVMRealOLT, a, l_const(m, 0x1p-30)); /* here the cubic term is below the precision */
  return l_select(m, tiny, l_mul(m, a, l_const(m, HALF_ROOT_PI)), y);
}

/* 0 <= a < 1 */
static ts_v erf_inv_of_magnitude(ts_vm *m, ts_v a) {
  if (m->wide && !m->fma) return erf_inv_without_fma(m, a);
  ts_v w = minus_log(m, a), t = l_sub(m, w, l_const(m, m->wide ? MIDDLE_WIDE : MIDDLE));
  ts_v p = m->wide ? L_POLY(m, t, erf_inv_central_wide) : L_POLY(m, t, erf_inv_central_narrow);
  ts_v is_tail = l_cmp(m, LLVMRealOGT, w, l_const(m, TAIL));
  return l_rarely(m, is_tail, l_mul(m, a, p), m->wide ? tail_wide : tail_narrow, a, w);
}

ts_v ts_vm_erf_inv(ts_vm *m, ts_v x) {
  ts_v a = l_abs(m, x), one = l_const(m, 1);
  ts_v inside = l_cmp(m, LLVMRealOLT, a, one), edge = l_cmp(m, LLVMRealOEQ, a, one);
  ts_v y = erf_inv_of_magnitude(m, l_select(m, inside, a, l_const(m, 0)));
  ts_v outside = l_select(m, edge, l_const(m, __builtin_inf()), l_const(m, __builtin_nan("")));
  return l_copysign(m, l_select(m, inside, y, outside), x);
}
