/* AVX-512's own floating-point instructions. They take one register, so wider vectors are processed in parts. Some also
 * exist for shorter registers. */
#include "jit/math/vecmath.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

enum { CURRENT_ROUNDING = 4, NORM_FROM_3_4 = 3, NAN_OF_NEGATIVE = 2, RANGE_MIN = 4, RANGE_MAX = 5 };

/* Calls llvm.x86.avx512.<name>.ps.512 or similar with the operands, then pass-through, full mask and, for 512 bits
 * only, the rounding mode. */
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

/* Applies it register by register. `b` is NULL, a vector like `a`, or a scalar for all parts. */
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

/* This instruction respects the order of zeros, but returns the number where one operand is NaN. */
static ts_v range(ts_vm *m, ts_v a, ts_v b, bool largest) {
  ts_v how = LLVMConstInt(LLVMInt32TypeInContext(m->e->context), largest ? RANGE_MAX : RANGE_MIN, false);
  return masked(m, "mask.range", (ts_v[]){a, b, how}, 3, true);
}

/* With a mask it takes three instructions as well, each under that mask. */
ts_v ts_vm_avx512_extreme(ts_vm *m, bool largest, ts_v a, ts_v b, ts_v mask) {
  unsigned lanes = LLVMGetVectorSize(LLVMTypeOf(a));
  if (lanes > (m->wide ? 8 : 16)) {
    ts_v half[2];
    for (unsigned i = 0; i < 2; i++) {
      unsigned first = i * lanes / 2, count = lanes / 2;
      half[i] = ts_vm_avx512_extreme(m, largest, l_lanes(m, a, first, count), l_lanes(m, b, first, count),
                                     mask ? l_lanes(m, mask, first, count) : NULL);
    }
    return l_join(m, half[0], half[1]);
  }
  ts_vm part = *m;
  part.lanes = lanes;
  ts_v best = range(m, a, b, largest), none = l_cmp(m, LLVMRealUNO, a, b);
  if (mask) best = l_select(m, mask, best, a), none = LLVMBuildAnd(m->b, mask, none, "");
  return l_select(m, none, l_const(&part, NAN), best);
}

ts_v ts_vm_avx512_number(ts_vm *m, bool largest, ts_v a, ts_v b) {
  unsigned lanes = LLVMGetVectorSize(LLVMTypeOf(a)), count = lanes / 2;
  if (lanes <= (m->wide ? 8 : 16)) return range(m, a, b, largest);
  ts_v low = ts_vm_avx512_number(m, largest, l_lanes(m, a, 0, count), l_lanes(m, b, 0, count));
  return l_join(m, low, ts_vm_avx512_number(m, largest, l_lanes(m, a, count, count), l_lanes(m, b, count, count)));
}
