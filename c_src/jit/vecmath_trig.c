/* Trigonometric functions and their inverses. */
#include "jit/vecmath.h"

ts_v ts_vm_sin(ts_vm *m, ts_v x) { return ts_vm_library(m, "sin", "u10", x, NULL); }

ts_v ts_vm_cos(ts_vm *m, ts_v x) { return ts_vm_library(m, "cos", "u10", x, NULL); }

ts_v ts_vm_tan(ts_vm *m, ts_v x) { return ts_vm_library(m, "tan", "u10", x, NULL); }

ts_v ts_vm_asin(ts_vm *m, ts_v x) { return ts_vm_library(m, "asin", "u10", x, NULL); }

ts_v ts_vm_acos(ts_vm *m, ts_v x) { return ts_vm_library(m, "acos", "u10", x, NULL); }

ts_v ts_vm_atan(ts_vm *m, ts_v x) { return ts_vm_library(m, "atan", "u10", x, NULL); }

ts_v ts_vm_atan2(ts_vm *m, ts_v y, ts_v x) { return ts_vm_library(m, "atan2", "u10", y, x); }
