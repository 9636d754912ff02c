/* Trigonometric functions and their inverses. */
#include "jit/vecmath.h"

/* sin(r) = r + r^3 P(r^2), |r| <= pi / 2 + 0.001. Relative error 2^-27.2. */
static const double sin_narrow[] = {-0.166666597, 0.00833306927, -0.000198097725, 2.60607453e-06};

/* pi in three floats, to 2^-70. None is above what is left of pi: then -0 - 0 * part stays -0. */
#define PI_1 0x1.921fb4p+1
#define PI_2 0x1.4442dp-23
#define PI_3 0x1.846988p-47

/* The reduction below keeps its accuracy and the polynomial its interval up to here. */
#define REDUCTION_LIMIT 16384.0

/* x - n pi with the first product subtracted exactly: what remains is a multiple of the last place of x or
 * of pi, and below 2. */
static ts_v subtract_pi(ts_vm *m, ts_v x, ts_v n) {
  ts_v r = l_fma(m, n, l_const(m, -PI_1), x);
  r = l_fma(m, n, l_const(m, -PI_2), r);
  return l_fma(m, n, l_const(m, -PI_3), r);
}

/* sin(r), negated where the lowest bit of `odd` is set. On |r|, so that zeros keep their sign;
 * near pi / 2 rounding must not lead past 1. */
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

ts_v ts_vm_atan2(ts_vm *m, ts_v y, ts_v x) { return ts_vm_library(m, "atan2", "u10", y, x); }
