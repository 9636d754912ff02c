/* The error function, its complement and its inverse. */
#include "jit/vecmath.h"

ts_v ts_vm_erf(ts_vm *m, ts_v x) { return ts_vm_library(m, "erf", "u10", x, NULL); }

ts_v ts_vm_erfc(ts_vm *m, ts_v x) { return ts_vm_library(m, "erfc", "u15", x, NULL); }

/* One step of Halley's method on erf (|x| < 1/2) or erfc: for y with erf(y) close to |x|. */
static ts_v halley(ts_vm *m, ts_v y, ts_v goal) {
  ts_v central = l_cmp(m, LLVMRealOLT, goal, l_const(m, 0.5));
  ts_v low = l_sub(m, ts_vm_erf(m, y), goal);
  ts_v high = l_sub(m, l_sub(m, l_const(m, 1), goal), ts_vm_erfc(m, y));
  ts_v error = l_select(m, central, low, high);
  ts_v slope = ts_vm_exp(m, l_mul(m, y, y)); /* of the inverse, without sqrt(pi) / 2 */
  ts_v step = l_mul(m, l_mul(m, error, l_const(m, 0.88622692545275801365)), slope);
  return l_sub(m, y, l_div(m, step, l_add(m, l_const(m, 1), l_mul(m, y, step))));
}

/* Winitzki's approximation, within 0.2 %. */
static ts_v erf_inv_start(ts_vm *m, ts_v goal) {
  const double a = 0.147, two_over_pi = 0.63661977236758134308;
  ts_v one = l_const(m, 1);
  ts_v log_term = ts_vm_log(m, l_mul(m, l_sub(m, one, goal), l_add(m, one, goal)));
  ts_v half = l_add(m, l_mul(m, log_term, l_const(m, 0.5)), l_const(m, two_over_pi / a));
  ts_v inner = l_sub(m, l_mul(m, half, half), l_mul(m, log_term, l_const(m, 1 / a)));
  return l_sqrt(m, l_at_least(m, l_sub(m, l_sqrt(m, inner), half), 0));
}

static ts_v erf_inv_wide(ts_vm *m, ts_v x) {
  ts_v goal = l_abs(m, x), one = l_const(m, 1);
  ts_v y = erf_inv_start(m, goal);
  for (int i = 0; i < 3; i++) y = halley(m, y, goal);
  ts_v inside = l_cmp(m, LLVMRealOLT, goal, one), edge = l_cmp(m, LLVMRealOEQ, goal, one);
  ts_v outside = l_select(m, edge, l_const(m, __builtin_inf()), l_const(m, __builtin_nan("")));
  ts_v tiny = l_cmp(m, LLVMRealOLT, goal, l_const(m, 1e-9));
  y = l_select(m, tiny, l_mul(m, goal, l_const(m, 0.88622692545275801365)), y);
  return l_copysign(m, l_select(m, inside, y, outside), x);
}

ts_v ts_vm_erf_inv(ts_vm *m, ts_v x) {
  if (m->wide) return erf_inv_wide(m, x);
  ts_vm wide = ts_vm_begin(m->e, true, m->lanes);
  return l_narrow(m, erf_inv_wide(&wide, l_widen(&wide, x)));
}
