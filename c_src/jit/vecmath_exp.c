/* exp and its relatives. */
#include "jit/vecmath.h"

ts_v ts_vm_exp(ts_vm *m, ts_v x) { return ts_vm_library(m, "exp", "u10", x, NULL); }

ts_v ts_vm_expm1(ts_vm *m, ts_v x) { return ts_vm_library(m, "expm1", "u10", x, NULL); }

/* With e = exp(-|x|), which never overflows: 1 / (1 + e) or e / (1 + e). */
ts_v ts_vm_sigmoid(ts_vm *m, ts_v x) {
  ts_v one = l_const(m, 1), zero = l_const(m, 0);
  ts_v e = ts_vm_exp(m, l_neg(m, l_abs(m, x)));
  ts_v numerator = l_select(m, l_cmp(m, LLVMRealOLT, x, zero), e, one);
  return l_div(m, numerator, l_add(m, one, e));
}

ts_v ts_vm_tanh(ts_vm *m, ts_v x) { return ts_vm_library(m, "tanh", "u10", x, NULL); }

ts_v ts_vm_sinh(ts_vm *m, ts_v x) { return ts_vm_library(m, "sinh", "u10", x, NULL); }

ts_v ts_vm_cosh(ts_vm *m, ts_v x) { return ts_vm_library(m, "cosh", "u10", x, NULL); }
