/* Trigonometric functions and their inverses. */
#include "jit/math/vecmath.h"

/* sin(r) = r + r^3 P(r^2), |r| <= pi / 2 + 0.001. Relative error 2^-27.2. */
static const double sin_narrow[] = {-0.166666597, 0.00833306927, -0.000198097725, 2.60607453e-06};

/* pi in three floats, to 2^-70. No part exceeds the rest of pi, so that -0 - 0 * part stays -0. */
#define PI_1 0x1.921fb4p+1
#define PI_2 0x1.4442dp-23
#define PI_3 0x1.846988p-47

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

ts_v ts_vm_sin(ts_vm *m, ts_v x) {
  if (m->wide || !m->fma) return sin_library(m, x, NULL);
  ts_v magic = l_const(m, 0x1.8p23);
  ts_v t = l_fma(m, x, l_const(m, 0.31830988618379067154), magic);
  ts_v s = sin_poly(m, subtract_pi(m, x, l_sub(m, t, magic)), l_bits(m, t));
  return l_rarely(m, large(m, l_abs(m, x)), s, sin_library, x, NULL);
}

/* cos(r + (n + 1/2) pi) = (-1)^(n + 1) sin(r); the odd magic number adds that 1. */
ts_v ts_vm_cos(ts_vm *m, ts_v x) {
  if (m->wide || !m->fma) return cos_library(m, x, NULL);
  ts_v a = l_abs(m, x), magic = l_const(m, 0x1.8p23 + 1);
  ts_v t = l_add(m, l_fma(m, a, l_const(m, 0.31830988618379067154), l_const(m, -0.5)), magic);
  ts_v n = l_add(m, l_sub(m, t, magic), l_const(m, 0.5));
  ts_v c = sin_poly(m, subtract_pi(m, a, n), l_bits(m, t));
  return l_rarely(m, large(m, a), c, cos_library, x, NULL);
}

ts_v ts_vm_tan(ts_vm *m, ts_v x) { return ts_vm_library(m, "tan", "u10", x, NULL); }

ts_v ts_vm_asin(ts_vm *m, ts_v x) { return ts_vm_library(m, "asin", "u10", x, NULL); }

ts_v ts_vm_acos(ts_vm *m, ts_v x) { return ts_vm_library(m, "acos", "u10", x, NULL); }

ts_v ts_vm_atan(ts_vm *m, ts_v x) { return ts_vm_library(m, "atan", "u10", x, NULL); }

/* atan(t) / t in powers of t^2, 0 <= t <= 1. Relative error 2^-31. */
static const double atan_narrow[] = {0.9999999995535,  -0.3333332248891,   0.1999955810036,  -0.1427857602481,
                                     0.1105077127585,  -0.08785043282363,  0.06685281517877, -0.04392841073327,
                                     0.02191294586545, -0.007030669470424, 0.001057607438057};

/* For f32 in f64 lanes, where the quotient is accurate enough. The bound turns 0 / 0 into 0; two infinities count as
 * equal. */
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

ts_v ts_vm_atan2(ts_vm *m, ts_v y, ts_v x) {
  return m->wide ? ts_vm_library(m, "atan2", "u10", y, x) : atan2_narrow(m, y, x);
}
