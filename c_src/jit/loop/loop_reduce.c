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

static unsigned bits_of_lane(ts_v x) {
  LLVMTypeRef type = LLVMGetElementType(LLVMTypeOf(x));
  LLVMTypeKind kind = LLVMGetTypeKind(type);
  return kind == LLVMDoubleTypeKind ? 64 : kind == LLVMFloatTypeKind ? 32 : LLVMGetIntTypeWidth(type);
}

/* The lanes from 0 and from `half` on. The vectors are halved as long as the halves are registers. */
static void cut(ts_emit *e, ts_v x, unsigned half, ts_v *low, ts_v *high) {
  bool shorter = half * bits_of_lane(x) >= NARROWEST_BITS;
  *low = shorter ? lanes_from(e, x, 0, half) : x;
  *high = lanes_from(e, x, half, shorter ? half : lanes_of(x));
}

/* Combines two partly reduced accumulators. */
static ts_status join(ts_emit *e, const ts_reducer *r, ts_acc a, ts_acc b, ts_acc *out) {
  if (!has_extreme(e, r)) return ts_reducer_combine(e, r, a, b, out);
  ts_vm m = numbers_of(e, r);
  *out = (ts_acc){ts_vm_avx512_number(&m, r->by->kind == TS_COMBINE_MAX, a.value, b.value), NULL};
  return TS_SUCCESS;
}

/* Combines lanes i and i + half of the values. */
static ts_status halve(ts_emit *e, const ts_reducer *r, unsigned half, ts_acc *acc) {
  ts_acc low = {0}, high = {0};
  cut(e, acc->value, half, &low.value, &high.value);
  return join(e, r, low, high, acc);
}

ts_v ts_reducer_any(ts_emit *e, ts_v lanes) {
  LLVMTypeRef bits = LLVMIntTypeInContext(e->context, (unsigned)e->lanes);
  return LLVMBuildICmp(e->b, LLVMIntNE, LLVMBuildBitCast(e->b, lanes, bits, ""), LLVMConstNull(bits), "");
}

/* i1: true when any lane of the accumulators is NaN. */
static ts_v has_nan(ts_emit *e, const ts_acc *accs, int count) {
  ts_v any = NULL;
  for (int i = 0; i + 1 < count; i += 2) {
    ts_v pair = LLVMBuildFCmp(e->b, LLVMRealUNO, accs[i].value, accs[i + 1].value, "");
    any = any ? LLVMBuildOr(e->b, any, pair, "") : pair;
  }
  return ts_reducer_any(e, any);
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

ts_v ts_reducer_is_better(ts_emit *e, const ts_reducer *r, ts_v x, ts_v y) {
  if (!ts_dtype_is_float(r->type)) return compare(e, r, x, y, false);
  return LLVMBuildFCmp(e->b, ts_arg_takes_largest(r->op) ? LLVMRealOGT : LLVMRealOLT, x, y, "");
}

ts_v ts_reducer_better(ts_emit *e, const ts_reducer *r, ts_v x, ts_v y) {
  return LLVMBuildSelect(e->b, ts_reducer_is_better(e, r, x, y), x, y, ""); /* one instruction */
}

/* Combines lanes i and i + half until one is left. */
ts_v ts_reducer_best(ts_emit *e, const ts_reducer *r, ts_v x) {
  for (unsigned half = (unsigned)e->lanes / 2; half > 0; half /= 2) {
    ts_v low, high;
    cut(e, x, half, &low, &high);
    x = ts_reducer_better(e, r, low, high);
  }
  return first_in_all(e, x);
}

/* The best lane of ARG, by its index: first the extreme value, then the first or the last index of those lanes that
 * have it, which takes less than to combine pairs of both. If there are NaNs, these are the lanes. */
static ts_v best_index(ts_emit *e, const ts_reducer *r, ts_acc acc) {
  const ts_reducer by_index = {
      .op = r->high ? TS_OP_ARGMAX : TS_OP_ARGMIN, .type = TS_S32, .kind = TS_NODE_ARG, .result = TS_S32};
  ts_v value = acc.value, is_best, none;
  if (ts_dtype_is_float(r->type)) {
    ts_v is_nan = unordered(e, value), any = ts_reducer_any(e, is_nan);
    value = LLVMBuildSelect(e->b, is_nan, ts_emit_const_bits(e, r->type, identity_of(r).bits), value, "");
    is_best = LLVMBuildFCmp(e->b, LLVMRealOEQ, value, ts_reducer_best(e, r, value), "");
    is_best = LLVMBuildSelect(e->b, any, is_nan, is_best, "");
  } else {
    is_best = LLVMBuildICmp(e->b, LLVMIntEQ, value, ts_reducer_best(e, r, value), "");
  }
  none = ts_emit_const_bits(e, TS_S32, identity_of(&by_index).bits);
  return ts_reducer_best(e, &by_index, LLVMBuildSelect(e->b, is_best, acc.index, none, ""));
}

ts_acc ts_reducer_final(ts_emit *e, const ts_reducer *r) {
  const bool largest = r->by ? r->by->kind == TS_COMBINE_MAX : ts_arg_takes_largest(r->op);
  const ts_scalar best = largest ? ts_dtype_highest(r->type) : ts_dtype_lowest(r->type);
  const uint64_t nan = r->type == TS_F64 ? NAN_F64 : NAN_F32;
  ts_acc acc = {ts_emit_const_bits(e, r->type, ts_dtype_is_float(r->type) ? nan : best.bits), NULL};
  if (r->kind == TS_NODE_ARG) acc.index = ts_emit_const_bits(e, TS_S32, 0);
  return acc;
}

ts_v ts_reducer_is_final(ts_emit *e, const ts_reducer *r, const ts_acc *accs, int count) {
  ts_v any = NULL;
  for (int i = 0; i < count; i++) {
    ts_v x = accs[i].value;
    ts_v is_final = ts_dtype_is_float(r->type) ? unordered(e, x)
                                               : LLVMBuildICmp(e->b, LLVMIntEQ, x, ts_reducer_final(e, r).value, "");
    any = any ? LLVMBuildOr(e->b, any, is_final, "") : is_final;
  }
  return ts_reducer_any(e, any);
}

/* Numbers are combined without regard to NaN; one check at the end covers all. */
ts_status ts_reducer_collapse(ts_emit *e, const ts_reducer *r, ts_acc *accs, int count, ts_v *out) {
  ts_v nan = has_extreme(e, r) ? has_nan(e, accs, count) : NULL;
  for (int half = count / 2; half > 0; half /= 2) {
    for (int i = 0; i < half; i++) TS_TRY(join(e, r, accs[i], accs[i + half], &accs[i]));
  }
  ts_acc acc = accs[0];
  if (r->kind == TS_NODE_ARG) {
    acc.index = best_index(e, r, acc);
    *out = ts_reducer_finish(e, r, acc);
    return TS_SUCCESS;
  }
  for (unsigned half = (unsigned)e->lanes / 2; half > 0; half /= 2) TS_TRY(halve(e, r, half, &acc));
  acc.value = nan ? number_or_nan(e, r, acc.value, nan) : first_in_all(e, acc.value);
  *out = ts_reducer_finish(e, r, acc);
  return TS_SUCCESS;
}

/* Without a check for NaN at the end: it would have to be one for each column. */
ts_status ts_reducer_collapse_columns(ts_emit *e, const ts_reducer *r, ts_acc *accs, int count, unsigned columns,
                                      ts_v *out) {
  for (int half = count / 2; half > 0; half /= 2)
    for (int i = 0; i < half; i++) TS_TRY(ts_reducer_combine(e, r, accs[i], accs[i + half], &accs[i]));
  ts_acc acc = accs[0];
  for (unsigned half = (unsigned)e->lanes / 2; half >= columns; half /= 2) {
    ts_acc low = {0}, high = {0};
    cut(e, acc.value, half, &low.value, &high.value);
    TS_TRY(ts_reducer_combine(e, r, low, high, &acc));
  }
  acc.value = ts_loop_repeat(e, acc.value, columns);
  *out = ts_reducer_finish(e, r, acc);
  return TS_SUCCESS;
}

ts_status ts_reducer_few(ts_emit *e, const ts_reducer *r, ts_acc *accs, int64_t count, ts_v *out) {
  for (int64_t half = TS_REDUCE_LANES / 2; half > 0; half /= 2)
    for (int64_t i = 0; i < half && i + half < count; i++)
      TS_TRY(ts_reducer_combine(e, r, accs[i], accs[i + half], &accs[i]));
  *out = ts_reducer_finish(e, r, accs[0]);
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
