/* Elements of 16 bytes. Code for integers of 128 bits would move each of them through two registers of 64 bits, so in
 * registers an element is two halves, lanes of their own. */
#include "jit/emit/emit.h"

static LLVMTypeRef halves_of(ts_emit *e, int elements) {
  return LLVMVectorType(LLVMInt64TypeInContext(e->context), 2 * (unsigned)elements);
}

/* Lanes [first, first + count) of one vector, or of two behind each other. */
static ts_v lanes_of(ts_emit *e, ts_v a, ts_v b, int first, int count) {
  LLVMValueRef from[128];
  for (int i = 0; i < count; i++) from[i] = LLVMConstInt(LLVMInt32TypeInContext(e->context), (unsigned)(first + i), 0);
  if (!b) b = LLVMGetPoison(LLVMTypeOf(a));
  return LLVMBuildShuffleVector(e->b, a, b, LLVMConstVector(from, (unsigned)count), "");
}

ts_v ts_emit_load_wide(ts_emit *e, ts_dtype type, const ts_v *addresses) {
  ts_v parts[64];
  for (int i = 0; i < e->lanes; i++) {
    parts[i] = LLVMBuildLoad2(e->b, halves_of(e, 1), addresses[i], "");
    LLVMSetAlignment(parts[i], (unsigned)ts_dtype_alignment(type));
  }
  for (int elements = 1; elements < e->lanes; elements *= 2)
    for (int i = 0; i < e->lanes; i += 2 * elements)
      parts[i] = lanes_of(e, parts[i], parts[i + elements], 0, 4 * elements);
  LLVMTypeRef vector = LLVMVectorType(ts_emit_memory_type(e, type), (unsigned)e->lanes);
  return LLVMBuildBitCast(e->b, parts[0], vector, "");
}

void ts_emit_store_wide(ts_emit *e, ts_dtype type, ts_v memory, const ts_v *addresses) {
  ts_v halves = LLVMBuildBitCast(e->b, memory, halves_of(e, e->lanes), "");
  for (int i = 0; i < e->lanes; i++) {
    ts_v element = lanes_of(e, halves, NULL, 2 * i, 2);
    LLVMSetAlignment(LLVMBuildStore(e->b, element, addresses[i]), (unsigned)ts_dtype_alignment(type));
  }
}

ts_v ts_emit_wide_mask(ts_emit *e, ts_v mask) {
  LLVMValueRef from[128];
  for (int i = 0; i < 2 * e->lanes; i++) from[i] = LLVMConstInt(LLVMInt32TypeInContext(e->context), (unsigned)i / 2, 0);
  ts_v twice = LLVMConstVector(from, 2 * (unsigned)e->lanes);
  return LLVMBuildShuffleVector(e->b, mask, LLVMGetPoison(LLVMTypeOf(mask)), twice, "");
}

ts_v ts_emit_wide_reverse(ts_emit *e, ts_v memory) {
  LLVMTypeRef type = LLVMTypeOf(memory);
  const int lanes = e->lanes;
  LLVMValueRef from[128];
  for (int i = 0; i < 2 * lanes; i++) {
    const int lane = 2 * (lanes - 1 - i / 2) + i % 2;
    from[i] = LLVMConstInt(LLVMInt32TypeInContext(e->context), (unsigned)lane, 0);
  }
  ts_v halves = LLVMBuildBitCast(e->b, memory, halves_of(e, lanes), "");
  ts_v order = LLVMConstVector(from, 2 * (unsigned)lanes);
  halves = LLVMBuildShuffleVector(e->b, halves, LLVMGetPoison(LLVMTypeOf(halves)), order, "reversed");
  return LLVMBuildBitCast(e->b, halves, type, "");
}
