/* The building blocks of vecmath.h. */
#include "jit/math/vecmath.h"

#include <string.h>

ts_vm ts_vm_begin(ts_emit *e, bool wide, unsigned lanes) {
  ts_vm m = {.e = e, .b = e->b, .lanes = lanes, .wide = wide, .fma = e->target->fma};
  m.scalar = wide ? LLVMDoubleTypeInContext(e->context) : LLVMFloatTypeInContext(e->context);
  m.int_scalar = wide ? LLVMInt64TypeInContext(e->context) : LLVMInt32TypeInContext(e->context);
  m.vec = LLVMVectorType(m.scalar, lanes);
  m.ints = LLVMVectorType(m.int_scalar, lanes);
  return m;
}

ts_v l_splat_const(LLVMValueRef scalar, unsigned lanes) {
  LLVMValueRef values[TS_VM_MAX_LANES];
  for (unsigned i = 0; i < lanes; i++) values[i] = scalar;
  return LLVMConstVector(values, lanes);
}

ts_v l_const(ts_vm *m, double value) {
  return ts_emit_hold(m->e, l_splat_const(LLVMConstReal(m->scalar, value), m->lanes));
}

ts_v l_int(ts_vm *m, int64_t value) {
  return l_splat_const(LLVMConstInt(m->int_scalar, (unsigned long long)value, true), m->lanes);
}

ts_v l_intrinsic(ts_vm *m, const char *name, ts_v *args, unsigned count) {
  unsigned id = LLVMLookupIntrinsicID(name, strlen(name));
  LLVMTypeRef overload = LLVMTypeOf(args[0]);
  LLVMValueRef function = LLVMGetIntrinsicDeclaration(m->e->module, id, &overload, 1);
  LLVMTypeRef type = LLVMIntrinsicGetType(m->e->context, id, &overload, 1);
  return LLVMBuildCall2(m->b, type, function, args, count, "");
}

ts_v l_fma(ts_vm *m, ts_v a, ts_v b, ts_v c) {
  if (!m->fma) return l_add(m, l_mul(m, a, b), c);
  return l_intrinsic(m, "llvm.fma", (ts_v[]){a, b, c}, 3);
}

ts_v l_sqrt(ts_vm *m, ts_v a) { return l_intrinsic(m, "llvm.sqrt", &a, 1); }

ts_v l_abs(ts_vm *m, ts_v a) { return l_intrinsic(m, "llvm.fabs", &a, 1); }

ts_v l_copysign(ts_vm *m, ts_v magnitude, ts_v sign) {
  return l_intrinsic(m, "llvm.copysign", (ts_v[]){magnitude, sign}, 2);
}

/* A longer polynomial is computed by even and odd powers side by side: there are not as many registers of f64 in work
 * as it takes to hide the time of one step after another. */
enum { LONG_POLYNOMIAL = 8 };

static ts_v every_second(ts_vm *m, ts_v square, const double *coefficients, int last) {
  ts_v sum = l_const(m, coefficients[last]);
  for (int i = last - 2; i >= 0; i -= 2) sum = l_fma(m, sum, square, l_const(m, coefficients[i]));
  return sum;
}

ts_v l_poly_in_two(ts_vm *m, ts_v x, ts_v square, const double *coefficients, int count) {
  ts_v even = every_second(m, square, coefficients, (count - 1) / 2 * 2);
  return l_fma(m, every_second(m, square, coefficients + 1, (count - 2) / 2 * 2), x, even);
}

/* The first coefficients have Horner's way in any case: rounding counts most there. */
ts_v l_poly(ts_vm *m, ts_v x, const double *coefficients, int count) {
  bool in_two = m->wide && m->fma && count > LONG_POLYNOMIAL;
  int first = in_two ? (count + 2) / 4 : count - 1;
  ts_v sum = l_const(m, coefficients[first]);
  if (in_two) sum = l_poly_in_two(m, x, l_mul(m, x, x), coefficients + first, count - first);
  for (int i = first - 1; i >= 0; i--) sum = l_fma(m, sum, x, l_const(m, coefficients[i]));
  return sum;
}

ts_v l_at_most(ts_vm *m, ts_v a, double bound) {
  ts_v limit = l_const(m, bound);
  return l_select(m, l_cmp(m, LLVMRealOGT, a, limit), limit, a);
}

ts_v l_at_least(ts_vm *m, ts_v a, double bound) {
  ts_v limit = l_const(m, bound);
  return l_select(m, l_cmp(m, LLVMRealOLT, a, limit), limit, a);
}

ts_v l_within(ts_vm *m, ts_v a, double low, double high) {
  ts_v least = l_const(m, low), most = l_const(m, high);
  a = l_select(m, l_cmp(m, LLVMRealOLT, a, most), a, most);
  return l_select(m, l_cmp(m, LLVMRealOGT, a, least), a, least);
}

ts_v l_lanes(ts_vm *m, ts_v a, unsigned first, unsigned count) {
  LLVMTypeRef i32 = LLVMInt32TypeInContext(m->e->context);
  LLVMValueRef mask[TS_VM_MAX_LANES];
  for (unsigned i = 0; i < count; i++) mask[i] = LLVMConstInt(i32, first + i, false);
  return LLVMBuildShuffleVector(m->b, a, LLVMGetPoison(LLVMTypeOf(a)), LLVMConstVector(mask, count), "");
}

ts_v l_join(ts_vm *m, ts_v low, ts_v high) {
  unsigned count = 2 * LLVMGetVectorSize(LLVMTypeOf(low));
  LLVMTypeRef i32 = LLVMInt32TypeInContext(m->e->context);
  LLVMValueRef mask[TS_VM_MAX_LANES];
  for (unsigned i = 0; i < count; i++) mask[i] = LLVMConstInt(i32, i, false);
  return LLVMBuildShuffleVector(m->b, low, high, LLVMConstVector(mask, count), "");
}

/* Marks a branch as unlikely, so that LLVM keeps spills out of the common path. */
static void mark_unlikely(ts_vm *m, LLVMValueRef branch) {
  LLVMContextRef c = m->e->context;
  LLVMTypeRef i32 = LLVMInt32TypeInContext(c);
  LLVMMetadataRef parts[] = {
      LLVMMDStringInContext2(c, "branch_weights", 14),
      LLVMValueAsMetadata(LLVMConstInt(i32, 1, false)),
      LLVMValueAsMetadata(LLVMConstInt(i32, 1 << 20, false)),
  };
  LLVMValueRef weights = LLVMMetadataAsValue(c, LLVMMDNodeInContext2(c, parts, 3));
  LLVMSetMetadata(branch, LLVMGetMDKindIDInContext(c, "prof", 4), weights);
}

/* The condition in lanes whose results are kept: the others are zeros, for which some functions have rare code. */
static ts_v of_part(ts_vm *m, ts_v condition) {
  if (!m->e->part || m->lanes != (unsigned)m->e->lanes) return condition;
  return LLVMBuildAnd(m->b, condition, ts_emit_lane_mask(m->e, m->e->part), "");
}

l_branch l_branch_begin(ts_vm *m, ts_v condition, bool likely) {
  LLVMContextRef c = m->e->context;
  l_branch branch = {.before = LLVMGetInsertBlock(m->b)};
  LLVMValueRef function = LLVMGetBasicBlockParent(branch.before);
  LLVMBasicBlockRef inside = LLVMAppendBasicBlockInContext(c, function, "inside");
  branch.join = LLVMAppendBasicBlockInContext(c, function, "join");
  LLVMTypeRef bits = LLVMIntTypeInContext(c, m->lanes);
  ts_v any = LLVMBuildICmp(m->b, LLVMIntNE, LLVMBuildBitCast(m->b, of_part(m, condition), bits, ""),
                           LLVMConstNull(bits), "any");
  LLVMValueRef jump = LLVMBuildCondBr(m->b, any, inside, branch.join);
  if (!likely) mark_unlikely(m, jump);
  LLVMPositionBuilderAtEnd(m->b, inside);
  return branch;
}

void l_branch_end(ts_vm *m, l_branch *branch) {
  branch->end = LLVMGetInsertBlock(m->b);
  LLVMBuildBr(m->b, branch->join);
  LLVMPositionBuilderAtEnd(m->b, branch->join);
}

ts_v l_branch_merge(ts_vm *m, const l_branch *branch, ts_v outside, ts_v inside) {
  ts_v result = LLVMBuildPhi(m->b, LLVMTypeOf(outside), "");
  LLVMAddIncoming(result, (ts_v[]){outside, inside}, (LLVMBasicBlockRef[]){branch->before, branch->end}, 2);
  return result;
}

ts_v l_rarely(ts_vm *m, ts_v condition, ts_v usual, ts_v (*rare)(ts_vm *m, ts_v x, ts_v y), ts_v x, ts_v y) {
  l_branch branch = l_branch_begin(m, condition, false);
  ts_v mixed = l_select(m, condition, rare(m, x, y), usual);
  l_branch_end(m, &branch);
  return l_branch_merge(m, &branch, usual, mixed);
}
