#include "jit/loop/loop_reduce.h"
#include "jit/math/vecmath.h"

ts_reducer ts_reducer_of(const ts_kernel_desc *desc, int32_t node) {
  const ts_kernel_node *n = &desc->nodes[node];
  ts_dtype operand = desc->nodes[n->a].dtype;
  const ts_combiner *by = ts_combiner_of(n->op); /* NULL: ARG */
  ts_reducer r = {.kind = n->kind, .op = n->op, .by = by, .operand = operand, .result = n->dtype};
  r.type = by && by->logical ? TS_U8 : ts_dtype_accumulator(operand);
  if (n->kind == TS_NODE_ARG) r.high = n->b != 0;
  return r;
}

static ts_scalar identity_of(const ts_reducer *r) {
  if (r->by) return ts_combiner_identity(r->by, r->type);
  return ts_arg_takes_largest(r->op) ? ts_dtype_lowest(r->type) : ts_dtype_highest(r->type);
}

/* An empty lane must lose every tie: its index is after all real elements for the first of equals, and before them for
 * the last. */
ts_acc ts_reducer_identity(ts_emit *e, const ts_reducer *r, ts_v first) {
  ts_acc acc = {ts_emit_const_bits(e, r->type, identity_of(r).bits), NULL};
  if (r->kind == TS_NODE_ARG) acc.index = r->high ? LLVMConstAllOnes(LLVMTypeOf(first)) : first;
  return acc;
}

/* ---- ARG ---- */

static ts_v compare(ts_emit *e, const ts_reducer *r, ts_v x, ts_v y, bool or_equal) {
  bool largest = ts_arg_takes_largest(r->op);
  if (ts_dtype_is_float(r->type)) {
    LLVMRealPredicate strict = largest ? LLVMRealUGT : LLVMRealULT, loose = largest ? LLVMRealUGE : LLVMRealULE;
    return LLVMBuildFCmp(e->b, or_equal ? loose : strict, x, y, "");
  }
  bool is_signed = ts_dtype_is_signed(r->type);
  LLVMIntPredicate strict = largest ? (is_signed ? LLVMIntSGT : LLVMIntUGT) : (is_signed ? LLVMIntSLT : LLVMIntULT);
  LLVMIntPredicate loose = largest ? (is_signed ? LLVMIntSGE : LLVMIntUGE) : (is_signed ? LLVMIntSLE : LLVMIntULE);
  return LLVMBuildICmp(e->b, or_equal ? loose : strict, x, y, "");
}

static ts_v unordered(ts_emit *e, ts_v x) { return LLVMBuildFCmp(e->b, LLVMRealUNO, x, x, ""); }

/* Whether x, found later, replaces y. The comparisons are true when either is NaN. */
static ts_v replaces(ts_emit *e, const ts_reducer *r, ts_v x, ts_v y) {
  ts_v better = compare(e, r, x, y, r->high);
  if (!ts_dtype_is_float(r->type)) return better;
  better = LLVMBuildAnd(e->b, better, LLVMBuildNot(e->b, unordered(e, y), ""), "");
  return r->high ? LLVMBuildOr(e->b, better, unordered(e, x), "") : better;
}

static ts_acc take_if(ts_emit *e, ts_v mask, ts_acc a, ts_acc b) {
  return (ts_acc){LLVMBuildSelect(e->b, mask, a.value, b.value, ""), LLVMBuildSelect(e->b, mask, a.index, b.index, "")};
}

/* Combines in any order: among equals (NaNs are equal) the index decides. */
static ts_acc better_of(ts_emit *e, const ts_reducer *r, ts_acc a, ts_acc b) {
  ts_v strictly = compare(e, r, b.value, a.value, false), equal, first;
  if (ts_dtype_is_float(r->type)) {
    ts_v a_nan = unordered(e, a.value), b_nan = unordered(e, b.value);
    strictly = LLVMBuildAnd(e->b, strictly, LLVMBuildNot(e->b, a_nan, ""), "");
    equal = LLVMBuildFCmp(e->b, LLVMRealOEQ, a.value, b.value, "");
    equal = LLVMBuildOr(e->b, equal, LLVMBuildAnd(e->b, a_nan, b_nan, ""), "");
  } else {
    equal = LLVMBuildICmp(e->b, LLVMIntEQ, a.value, b.value, "");
  }
  first = LLVMBuildICmp(e->b, r->high ? LLVMIntSGT : LLVMIntSLT, b.index, a.index, "");
  return take_if(e, LLVMBuildOr(e->b, strictly, LLVMBuildAnd(e->b, equal, first, ""), ""), b, a);
}

/* ---- combiners and ARG ---- */

ts_status ts_reducer_combine(ts_emit *e, const ts_reducer *r, ts_acc a, ts_acc b, ts_acc *out) {
  if (r->kind == TS_NODE_ARG) {
    *out = better_of(e, r, a, b);
    return TS_SUCCESS;
  }
  out->index = NULL;
  return ts_emit_op(e, r->by->op, r->type, (ts_v[]){a.value, b.value}, &out->value);
}

static ts_acc only_in(ts_emit *e, ts_v mask, ts_acc now, ts_acc before) {
  if (now.index) return take_if(e, mask, now, before);
  return (ts_acc){LLVMBuildSelect(e->b, mask, now.value, before.value, ""), NULL};
}

/* True when one AVX-512 instruction selects the better of two numbers. */
static bool has_extreme(const ts_emit *e, const ts_reducer *r) {
  bool extreme = r->by && (r->by->kind == TS_COMBINE_MAX || r->by->kind == TS_COMBINE_MIN);
  return extreme && ts_dtype_is_float(r->type) && e->target->isa == TS_ISA_AVX512;
}

static ts_vm numbers_of(ts_emit *e, const ts_reducer *r) {
  return ts_vm_begin(e, r->type == TS_F64, (unsigned)e->lanes);
}

ts_status ts_reducer_step(ts_emit *e, const ts_reducer *r, ts_acc acc, ts_acc x, ts_v mask, ts_acc *out) {
  if (has_extreme(e, r)) {
    ts_vm m = numbers_of(e, r);
    *out = (ts_acc){ts_vm_avx512_extreme(&m, r->by->kind == TS_COMBINE_MAX, acc.value, x.value, mask), NULL};
    return TS_SUCCESS;
  }
  if (r->by && r->by->logical) x.value = ts_emit_truth(e, ts_emit_mask(e, r->operand, x.value));
  if (r->kind == TS_NODE_ARG)
    *out = take_if(e, replaces(e, r, x.value, acc.value), x, acc);
  else
    TS_TRY(ts_reducer_combine(e, r, acc, x, out));
  if (mask) *out = only_in(e, mask, *out, acc);
  return TS_SUCCESS;
}

/* ---- lanes ---- */

#define NAN_F32 UINT64_C(0x7FC00000)
#define NAN_F64 UINT64_C(0x7FF8000000000000)
#define NARROWEST_BITS 128 /* shorter vectors are not registers of their own */

static unsigned lanes_of(ts_v x) { return LLVMGetVectorSize(LLVMTypeOf(x)); }

/* `count` lanes of x from lane `first` on; lanes past the end are undefined. */
static ts_v lanes_from(ts_emit *e, ts_v x, unsigned first, unsigned count) {
  LLVMTypeRef i32 = LLVMInt32TypeInContext(e->context);
  ts_v mask[64], none = LLVMGetPoison(LLVMTypeOf(x));
  for (unsigned i = 0; i < count; i++) {
    mask[i] = first + i < lanes_of(x) ? LLVMConstInt(i32, first + i, 0) : LLVMGetPoison(i32);
  }
  return LLVMBuildShuffleVector(e->b, x, none, LLVMConstVector(mask, count), "");
}

static ts_acc acc_from(ts_emit *e, ts_acc acc, unsigned first, unsigned count) {
  return (ts_acc){lanes_from(e, acc.value, first, count), acc.index ? lanes_from(e, acc.index, first, count) : NULL};
}

static unsigned bits_of_lane(ts_v x) {
  LLVMTypeRef type = LLVMGetElementType(LLVMTypeOf(x));
  LLVMTypeKind kind = LLVMGetTypeKind(type);
  return kind == LLVMDoubleTypeKind ? 64 : kind == LLVMFloatTypeKind ? 32 : LLVMGetIntTypeWidth(type);
}

/* Combines two partly reduced accumulators. */
static ts_status join(ts_emit *e, const ts_reducer *r, ts_acc a, ts_acc b, ts_acc *out) {
  if (!has_extreme(e, r)) return ts_reducer_combine(e, r, a, b, out);
  ts_vm m = numbers_of(e, r);
  *out = (ts_acc){ts_vm_avx512_number(&m, r->by->kind == TS_COMBINE_MAX, a.value, b.value), NULL};
  return TS_SUCCESS;
}

/* Combines lanes i and i + half. The vectors are halved as long as the halves are registers. */
static ts_status halve(ts_emit *e, const ts_reducer *r, unsigned half, ts_acc *acc) {
  bool shorter = half * bits_of_lane(acc->value) >= NARROWEST_BITS;
  unsigned count = shorter ? half : lanes_of(acc->value);
  ts_acc low = shorter ? acc_from(e, *acc, 0, count) : *acc;
  return join(e, r, low, acc_from(e, *acc, half, count), acc);
}

/* i1: true when any lane of the accumulators is NaN. */
static ts_v has_nan(ts_emit *e, const ts_acc *accs) {
  ts_v lanes = LLVMBuildFCmp(e->b, LLVMRealUNO, accs[0].value, accs[1].value, "");
  LLVMTypeRef bits = LLVMIntTypeInContext(e->context, (unsigned)e->lanes);
  return LLVMBuildICmp(e->b, LLVMIntNE, LLVMBuildBitCast(e->b, lanes, bits, ""), LLVMConstNull(bits), "");
}

/* Lane 0 in all lanes, or NaN; selected as integers, without a branch. */
static ts_v number_or_nan(ts_emit *e, const ts_reducer *r, ts_v x, ts_v nan) {
  LLVMTypeRef element = LLVMGetElementType(LLVMTypeOf(x)), bits = LLVMIntTypeInContext(e->context, bits_of_lane(x));
  ts_v first = LLVMBuildExtractElement(e->b, x, LLVMConstInt(LLVMInt32TypeInContext(e->context), 0, 0), "");
  ts_v none = LLVMConstInt(bits, r->type == TS_F64 ? NAN_F64 : NAN_F32, 0);
  first = LLVMBuildSelect(e->b, nan, none, LLVMBuildBitCast(e->b, first, bits, ""), "");
  return ts_emit_splat(e, LLVMBuildBitCast(e->b, first, element, ""));
}

static ts_v first_in_all(ts_emit *e, ts_v x) {
  ts_v first = LLVMConstNull(LLVMVectorType(LLVMInt32TypeInContext(e->context), (unsigned)e->lanes));
  return LLVMBuildShuffleVector(e->b, x, LLVMGetPoison(LLVMTypeOf(x)), first, "");
}

/* Numbers are combined without regard to NaN; one check at the end covers all. */
ts_status ts_reducer_collapse(ts_emit *e, const ts_reducer *r, ts_acc *accs, int count, ts_v *out) {
  ts_v nan = has_extreme(e, r) ? has_nan(e, accs) : NULL;
  for (int half = count / 2; half > 0; half /= 2) {
    for (int i = 0; i < half; i++) TS_TRY(join(e, r, accs[i], accs[i + half], &accs[i]));
  }
  ts_acc acc = accs[0];
  for (unsigned half = (unsigned)e->lanes / 2; half > 0; half /= 2) TS_TRY(halve(e, r, half, &acc));
  acc.value = nan ? number_or_nan(e, r, acc.value, nan) : first_in_all(e, acc.value);
  if (acc.index) acc.index = first_in_all(e, acc.index);
  *out = ts_reducer_finish(e, r, acc);
  return TS_SUCCESS;
}

ts_v ts_reducer_finish(ts_emit *e, const ts_reducer *r, ts_acc acc) {
  if (r->kind == TS_NODE_ARG) {
    ts_v zero = LLVMConstNull(LLVMTypeOf(acc.index)); /* no elements */
    ts_v index = ts_emit_intrinsic(e, "llvm.smax", NULL, (ts_v[]){acc.index, zero}, 2);
    return ts_emit_convert(e, TS_S32, r->result, index);
  }
  return r->type == r->result ? acc.value : ts_emit_convert(e, r->type, r->result, acc.value);
}
