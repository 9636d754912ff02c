/* AVX-512's own floating-point instructions. They take one register: wider
 * vectors go in parts. Some exist for shorter registers too. */
#include "jit/vecmath.h"

#include <stdio.h>
#include <string.h>

enum { CURRENT_ROUNDING = 4, NORM_FROM_3_4 = 3, NAN_OF_NEGATIVE = 2, RANGE_MIN = 4, RANGE_MAX = 5 };

/* llvm.x86.avx512.<name>.ps.512 or the like of the operands, then pass-through, full mask and, of 512 bits only, the
 * rounding mode. */
static ts_v masked(ts_vm *m, const char *name, const ts_v *operands, unsigned count, bool rounding) {
  char symbol[64];
  unsigned lanes = LLVMGetVectorSize(LLVMTypeOf(operands[0])), bits = lanes * (m->wide ? 64 : 32);
  snprintf(symbol, sizeof(symbol), "llvm.x86.avx512.%s.%s.%u", name, m->wide ? "pd" : "ps", bits);
  unsigned id = LLVMLookupIntrinsicID(symbol, strlen(symbol));
  LLVMContextRef c = m->e->context;
  ts_v args[6];
  for (unsigned i = 0; i < count; i++) args[i] = operands[i];
  unsigned n = count;
  args[n++] = LLVMConstNull(LLVMVectorType(m->scalar, lanes));
  args[n++] = LLVMConstAllOnes(LLVMIntTypeInContext(c, lanes < 8 ? 8 : lanes));
  if (rounding && bits == 512) args[n++] = LLVMConstInt(LLVMInt32TypeInContext(c), CURRENT_ROUNDING, false);
  LLVMValueRef function = LLVMGetIntrinsicDeclaration(m->e->module, id, NULL, 0);
  return LLVMBuildCall2(m->b, LLVMIntrinsicGetType(c, id, NULL, 0), function, args, n, "");
}

/* Register by register. `b` is NULL, a vector like `a`, or a scalar that all share. */
static ts_v in_parts(ts_vm *m, const char *name, ts_v a, ts_v b, bool rounding) {
  unsigned lanes = LLVMGetVectorSize(LLVMTypeOf(a));
  if (lanes == (m->wide ? 8 : 16)) return masked(m, name, (ts_v[]){a, b}, b ? 2 : 1, rounding);
  bool split = b && LLVMGetTypeKind(LLVMTypeOf(b)) == LLVMVectorTypeKind;
  ts_v half[2];
  for (unsigned i = 0; i < 2; i++) {
    unsigned first = i * lanes / 2;
    half[i] = in_parts(m, name, l_lanes(m, a, first, lanes / 2), split ? l_lanes(m, b, first, lanes / 2) : b, rounding);
  }
  return l_join(m, half[0], half[1]);
}

ts_v ts_vm_avx512_scale(ts_vm *m, ts_v a, ts_v n) { return in_parts(m, "mask.scalef", a, n, true); }

ts_v ts_vm_avx512_exponent(ts_vm *m, ts_v a) { return in_parts(m, "mask.getexp", a, NULL, true); }

ts_v ts_vm_avx512_mantissa(ts_vm *m, ts_v a) {
  LLVMTypeRef i32 = LLVMInt32TypeInContext(m->e->context);
  return in_parts(m, "mask.getmant", a, LLVMConstInt(i32, NAN_OF_NEGATIVE << 2 | NORM_FROM_3_4, false), true);
}

ts_v ts_vm_avx512_rsqrt(ts_vm *m, ts_v a) { return in_parts(m, "rsqrt14", a, NULL, false); }

/* One instruction knows the order of zeros, and takes the number where one is NaN: a sum has the NaN. */
static ts_v extreme(ts_vm *m, ts_v a, ts_v b, unsigned which) {
  unsigned lanes = LLVMGetVectorSize(LLVMTypeOf(a));
  if (lanes > (m->wide ? 8 : 16)) {
    ts_v low = extreme(m, l_lanes(m, a, 0, lanes / 2), l_lanes(m, b, 0, lanes / 2), which);
    ts_v high = extreme(m, l_lanes(m, a, lanes / 2, lanes / 2), l_lanes(m, b, lanes / 2, lanes / 2), which);
    return l_join(m, low, high);
  }
  ts_v how = LLVMConstInt(LLVMInt32TypeInContext(m->e->context), which, false);
  ts_v best = masked(m, "mask.range", (ts_v[]){a, b, how}, 3, true);
  return l_select(m, l_cmp(m, LLVMRealUNO, a, b), l_add(m, a, b), best);
}

ts_v ts_vm_avx512_max(ts_vm *m, ts_v a, ts_v b) { return extreme(m, a, b, RANGE_MAX); }
ts_v ts_vm_avx512_min(ts_vm *m, ts_v a, ts_v b) { return extreme(m, a, b, RANGE_MIN); }
