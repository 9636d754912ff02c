/* Cumulative sums and products of short lines inside of a native loop, in the order of tensor/scan_order.h: a line is
 * less than a block. The line is a vector; its elements are taken out, combined one after the other, and put in again.
 */
#include "jit/flow/flow_scan.h"

typedef struct line {
  ts_emit *e;
  const ts_flow_scan *of;
  LLVMTypeRef element, carried;
} line;

static ts_v number(ts_emit *e, int64_t value) {
  return LLVMConstInt(LLVMInt64TypeInContext(e->context), (unsigned long long)value, 0);
}

/* A sum begins at +0, so that -0 becomes +0. */
static ts_v combine(const line *l, ts_v carry, ts_v x) {
  LLVMBuilderRef b = l->e->b;
  bool is_float = ts_dtype_is_float(l->of->type);
  if (l->of->op == TS_OP_CUMULATIVE_SUM) {
    if (!carry) carry = LLVMConstNull(l->carried);
    return is_float ? LLVMBuildFAdd(b, carry, x, "") : LLVMBuildAdd(b, carry, x, "");
  }
  if (!carry) return x;
  return is_float ? LLVMBuildFMul(b, carry, x, "") : LLVMBuildMul(b, carry, x, "");
}

static ts_v scanned(const line *l, ts_v vector) {
  LLVMBuilderRef b = l->e->b;
  ts_v carry = NULL, result = LLVMConstNull(LLVMTypeOf(vector));
  for (int64_t k = 0; k < l->of->count; k++) {
    ts_v lane = number(l->e, l->of->reverse ? l->of->count - 1 - k : k);
    ts_v x = LLVMBuildExtractElement(b, vector, lane, "");
    if (l->element != l->carried) x = LLVMBuildFPExt(b, x, l->carried, "");
    carry = combine(l, carry, x);
    x = l->element != l->carried ? LLVMBuildFPTrunc(b, carry, l->element, "") : carry;
    result = LLVMBuildInsertElement(b, result, x, lane, "");
  }
  return result;
}

void ts_flow_emit_scan(ts_emit *e, const ts_flow_scan *scan, ts_v from, ts_v to) {
  const int lanes = e->lanes;
  line l = {e, scan, ts_emit_memory_type(e, scan->type), NULL};
  l.carried = scan->type == TS_F32 ? LLVMDoubleTypeInContext(e->context) : l.element;
  for (e->lanes = 4; e->lanes < scan->count;) e->lanes *= 2;
  for (int64_t i = 0; i < scan->lines; i++) {
    ts_v at = number(e, i * scan->count * (int64_t)ts_dtype_size(scan->type)), part = number(e, scan->count);
    ts_v x = i == 0 ? from : LLVMBuildGEP2(e->b, LLVMInt8TypeInContext(e->context), from, &at, 1, "");
    ts_v y = i == 0 ? to : LLVMBuildGEP2(e->b, LLVMInt8TypeInContext(e->context), to, &at, 1, "");
    bool whole = scan->count == e->lanes;
    ts_v result = scanned(&l, whole ? ts_emit_load(e, scan->type, x) : ts_emit_load_tail(e, scan->type, x, part));
    if (whole)
      ts_emit_store(e, scan->type, result, y);
    else
      ts_emit_store_tail(e, scan->type, result, y, part);
  }
  e->lanes = lanes;
}
