/* log, its relatives, powers and roots. */
#include "jit/vecmath.h"

ts_v ts_vm_log(ts_vm *m, ts_v x) { return ts_vm_library(m, "log", "u10", x, NULL); }

ts_v ts_vm_log1p(ts_vm *m, ts_v x) { return ts_vm_library(m, "log1p", "u10", x, NULL); }

ts_v ts_vm_asinh(ts_vm *m, ts_v x) { return ts_vm_library(m, "asinh", "u10", x, NULL); }

ts_v ts_vm_acosh(ts_vm *m, ts_v x) { return ts_vm_library(m, "acosh", "u10", x, NULL); }

ts_v ts_vm_atanh(ts_vm *m, ts_v x) { return ts_vm_library(m, "atanh", "u10", x, NULL); }

ts_v ts_vm_pow(ts_vm *m, ts_v x, ts_v y) { return ts_vm_library(m, "pow", "u10", x, y); }

ts_v ts_vm_rsqrt(ts_vm *m, ts_v x) { return l_div(m, l_const(m, 1), l_sqrt(m, x)); }

ts_v ts_vm_cbrt(ts_vm *m, ts_v x) { return ts_vm_library(m, "cbrt", "u10", x, NULL); }
