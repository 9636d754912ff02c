#include "jit/emit/emit.h"

#include <string.h>

LLVMTypeRef ts_emit_memory_type(ts_emit *e, ts_dtype type) {
  switch ((ts_float_type)type) {
  case TS_FLOAT_F32: return LLVMFloatTypeInContext(e->context);
  case TS_FLOAT_F64: return LLVMDoubleTypeInContext(e->context);
  case TS_FLOAT_F8: /* their bits (emit_small.c, emit_half.c) */
  case TS_FLOAT_F8E4M3FN:
  case TS_FLOAT_F16:
  case TS_FLOAT_BF16: break;
  }
  return LLVMIntTypeInContext(e->context, 8 * (unsigned)ts_dtype_size(type));
}

LLVMTypeRef ts_emit_element_type(ts_emit *e, ts_dtype type) {
  return ts_emit_memory_type(e, ts_dtype_is_small(type) ? type : ts_dtype_compute(type));
}

LLVMTypeRef ts_emit_vector_type(ts_emit *e, ts_dtype type) {
  if (type == TS_C128) return LLVMVectorType(LLVMInt64TypeInContext(e->context), 2 * (unsigned)e->lanes);
  return LLVMVectorType(ts_emit_element_type(e, type), (unsigned)e->lanes);
}

ts_v ts_emit_splat(ts_emit *e, ts_v scalar) {
  LLVMTypeRef vector = LLVMVectorType(LLVMTypeOf(scalar), (unsigned)e->lanes);
  LLVMTypeRef i32 = LLVMInt32TypeInContext(e->context);
  ts_v first = LLVMBuildInsertElement(e->b, LLVMGetPoison(vector), scalar, LLVMConstInt(i32, 0, 0), "");
  ts_v zeros = LLVMConstNull(LLVMVectorType(i32, (unsigned)e->lanes));
  return LLVMBuildShuffleVector(e->b, first, LLVMGetPoison(vector), zeros, "splat");
}

static ts_v const_splat(ts_emit *e, ts_v scalar) {
  LLVMValueRef lanes[64];
  for (int i = 0; i < e->lanes; i++) lanes[i] = scalar;
  return LLVMConstVector(lanes, (unsigned)e->lanes);
}

/* The value as the register form represents it: rounded to the type. */
static double round_to(ts_dtype type, double value) {
  switch ((ts_float_type)type) {
  case TS_FLOAT_F16: return (double)ts_f16_to_f32(ts_f64_to_f16(value));
  case TS_FLOAT_BF16: return (double)ts_bf16_to_f32(ts_f64_to_bf16(value));
  case TS_FLOAT_F32: return (double)(float)value;
  case TS_FLOAT_F64:
  case TS_FLOAT_F8: /* these have no constants (pass/widen.c) */
  case TS_FLOAT_F8E4M3FN: break;
  }
  return value;
}

ts_v ts_emit_const_float(ts_emit *e, ts_dtype type, double value) {
  return const_splat(e, LLVMConstReal(ts_emit_element_type(e, type), round_to(type, value)));
}

ts_v ts_emit_const_int(ts_emit *e, ts_dtype type, int64_t value) {
  return const_splat(e, LLVMConstInt(ts_emit_element_type(e, type), (unsigned long long)value, 1));
}

/* Built from the integer of that width, so that a NaN keeps its bits. */
ts_v ts_emit_const_bits(ts_emit *e, ts_dtype type, uint64_t bits) {
  LLVMTypeRef element = ts_emit_element_type(e, type);
  type = ts_dtype_carrier(type);
  if (ts_dtype_is_narrow(type)) {
    float value = type == TS_F16 ? ts_f16_to_f32((uint16_t)bits) : ts_bf16_to_f32((uint16_t)bits);
    uint32_t wide;
    memcpy(&wide, &value, sizeof(wide));
    bits = wide;
  }
  unsigned width = type == TS_F64 ? 64 : ts_dtype_is_float(type) ? 32 : (unsigned)ts_dtype_bits(type);
  ts_v integer = LLVMConstInt(LLVMIntTypeInContext(e->context, width), bits, 0);
  return const_splat(e, ts_dtype_is_float(type) ? LLVMConstBitCast(integer, element) : integer);
}

static bool fits_register(const ts_emit *e, ts_v vector) {
  LLVMTypeRef type = LLVMTypeOf(vector);
  unsigned bits = LLVMGetTypeKind(LLVMGetElementType(type)) == LLVMDoubleTypeKind ? 64 : 32;
  return bits * LLVMGetVectorSize(type) <= 32 * (unsigned)e->target->lanes;
}

/* Defined in another block, the constant is an opaque register to LLVM: its uses do not expand it lane by lane, and it
 * need not be hoisted out of loops. */
ts_v ts_emit_hold(ts_emit *e, ts_v constant) {
  if (!e->holds || LLVMIsNull(constant) || !fits_register(e, constant)) return constant;
  for (int i = 0; i < e->held_count; i++) {
    if (e->held[i].constant == constant) return e->held[i].value;
  }
  if (e->held_count == TS_EMIT_MAX_HELD) return constant;
  LLVMBasicBlockRef here = LLVMGetInsertBlock(e->b);
  LLVMBasicBlockRef entry = LLVMGetEntryBasicBlock(LLVMGetBasicBlockParent(here));
  LLVMPositionBuilderBefore(e->b, LLVMGetFirstInstruction(entry));
  ts_v value = LLVMBuildFreeze(e->b, constant, "");
  LLVMPositionBuilderAtEnd(e->b, here);
  e->held[e->held_count].constant = constant;
  e->held[e->held_count++].value = value;
  return value;
}

ts_v ts_emit_intrinsic_of(ts_emit *e, const char *name, LLVMTypeRef *overloads, unsigned overload_count, ts_v *args,
                          unsigned count) {
  unsigned id = LLVMLookupIntrinsicID(name, strlen(name));
  LLVMValueRef function = LLVMGetIntrinsicDeclaration(e->module, id, overloads, overload_count);
  LLVMTypeRef type = LLVMIntrinsicGetType(e->context, id, overloads, overload_count);
  LLVMTypeRef result = LLVMGetReturnType(type);
  return LLVMBuildCall2(e->b, type, function, args, count, LLVMGetTypeKind(result) == LLVMVoidTypeKind ? "" : "v");
}

ts_v ts_emit_intrinsic(ts_emit *e, const char *name, LLVMTypeRef overload, ts_v *args, unsigned count) {
  if (!overload) overload = LLVMTypeOf(args[0]);
  return ts_emit_intrinsic_of(e, name, &overload, 1, args, count);
}

static void prefetch(ts_emit *e, ts_v address, bool to_write, unsigned locality) {
  LLVMTypeRef i32 = LLVMInt32TypeInContext(e->context);
  ts_v write = LLVMConstInt(i32, to_write, false), keep = LLVMConstInt(i32, locality, false);
  ts_v data = LLVMConstInt(i32, 1, false);
  ts_emit_intrinsic(e, "llvm.prefetch", NULL, (ts_v[]){address, write, keep, data}, 4);
}

void ts_emit_prefetch(ts_emit *e, ts_v address, bool to_write) { prefetch(e, address, to_write, 3); }
void ts_emit_prefetch_second(ts_emit *e, ts_v address) { prefetch(e, address, false, 2); }

ts_v ts_emit_alloca(ts_emit *e, LLVMTypeRef type) {
  LLVMBasicBlockRef here = LLVMGetInsertBlock(e->b);
  LLVMBasicBlockRef entry = LLVMGetEntryBasicBlock(e->function);
  LLVMValueRef first = LLVMGetFirstInstruction(entry);
  if (first) {
    LLVMPositionBuilderBefore(e->b, first);
  } else {
    LLVMPositionBuilderAtEnd(e->b, entry);
  }
  ts_v slot = LLVMBuildAlloca(e->b, type, "slot");
  LLVMSetAlignment(slot, 64);
  LLVMPositionBuilderAtEnd(e->b, here);
  return slot;
}

ts_v ts_emit_lane_numbers(ts_emit *e) {
  LLVMTypeRef i64 = LLVMInt64TypeInContext(e->context);
  LLVMValueRef lanes[64];
  for (int i = 0; i < e->lanes; i++) lanes[i] = LLVMConstInt(i64, (unsigned)i, 0);
  return LLVMConstVector(lanes, (unsigned)e->lanes);
}

/* Compared in 32 bits: half the work of 64, and lane counts are small. */
ts_v ts_emit_lane_mask(ts_emit *e, ts_v part) {
  if (LLVMGetTypeKind(LLVMTypeOf(part)) == LLVMVectorTypeKind) return part;
  LLVMTypeRef i32 = LLVMInt32TypeInContext(e->context);
  LLVMValueRef lanes[64];
  for (int i = 0; i < e->lanes; i++) lanes[i] = LLVMConstInt(i32, (unsigned)i, 0);
  ts_v limit = ts_emit_splat(e, LLVMBuildTrunc(e->b, part, i32, ""));
  return LLVMBuildICmp(e->b, LLVMIntULT, LLVMConstVector(lanes, (unsigned)e->lanes), limit, "mask");
}
