/* AVX-512's own floating-point instructions. They take one register: wider
 * vectors go in parts. */
#include "jit/vecmath.h"

#include <stdio.h>
#include <string.h>

enum { CURRENT_ROUNDING = 4, NORM_FROM_3_4 = 3, NAN_OF_NEGATIVE = 2 };

/* llvm.x86.avx512.<name>.ps.512 or .pd.512 of the operands, then pass-through, full mask and rounding mode. */
static ts_v masked(ts_vm *m, const char *name, const ts_v *operands, unsigned count, bool rounding) {
  char symbol[64];
  snprintf(symbol, sizeof(symbol), "llvm.x86.avx512.%s.%s.512", name, m->wide ? "pd" : "ps");
  unsigned id = LLVMLookupIntrinsicID(symbol, strlen(symbol)), lanes = m->wide ? 8 : 16;
  LLVMContextRef c = m->e->context;
  ts_v args[6];
  for (unsigned i = 0; i < count; i++) args[i] = operands[i];
  unsigned n = count;
  args[n++] = LLVMConstNull(LLVMVectorType(m->scalar, lanes));
  args[n++] = LLVMConstAllOnes(LLVMIntTypeInContext(c, lanes));
  if (rounding) args[n++] = LLVMConstInt(LLVMInt32TypeInContext(c), CURRENT_ROUNDING, false);
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
