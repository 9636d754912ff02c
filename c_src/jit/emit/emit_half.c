/* Vector conversions between float and the 16-bit float types. bf16 uses integer arithmetic on all targets; f16 has
 * instructions on all targets except SSE4, where LLVM would call a routine of the compiler's runtime library. */
#include "jit/emit/emit.h"

static LLVMTypeRef vector_of(ts_emit *e, LLVMTypeRef element) { return LLVMVectorType(element, (unsigned)e->lanes); }
static LLVMTypeRef i16s(ts_emit *e) { return vector_of(e, LLVMInt16TypeInContext(e->context)); }
static LLVMTypeRef i32s(ts_emit *e) { return vector_of(e, LLVMInt32TypeInContext(e->context)); }
static LLVMTypeRef floats(ts_emit *e) { return vector_of(e, LLVMFloatTypeInContext(e->context)); }
static LLVMTypeRef halves(ts_emit *e) { return vector_of(e, LLVMHalfTypeInContext(e->context)); }

static ts_v word(ts_emit *e, uint32_t value) { return ts_emit_const_bits(e, TS_U32, value); }

static ts_v bf16_bits(ts_emit *e, ts_v value) {
  LLVMBuilderRef b = e->b;
  ts_v x = LLVMBuildBitCast(b, value, i32s(e), "");
  ts_v odd = LLVMBuildAnd(b, LLVMBuildLShr(b, x, word(e, 16), ""), word(e, 1), "");
  ts_v rounded = LLVMBuildAdd(b, LLVMBuildAdd(b, x, word(e, 0x7fff), ""), odd, "");
  /* Rounding could carry a NaN's payload into the sign bit. */
  ts_v quiet = LLVMBuildOr(b, x, word(e, 0x00400000), "");
  ts_v is_nan = LLVMBuildFCmp(b, LLVMRealUNO, value, value, "");
  ts_v bits = LLVMBuildSelect(b, is_nan, quiet, rounded, "");
  return LLVMBuildTrunc(b, LLVMBuildLShr(b, bits, word(e, 16), ""), i16s(e), "bf16");
}

static ts_v bf16_value(ts_emit *e, ts_v bits) {
  ts_v wide = LLVMBuildZExt(e->b, bits, i32s(e), "");
  return LLVMBuildBitCast(e->b, LLVMBuildShl(e->b, wide, word(e, 16), ""), floats(e), "bf16");
}

/* Computes three cases and selects: too large or NaN; subnormal in f16, where adding 0.5 aligns and rounds the
 * mantissa; and normal, where rounding is an integer addition. */
static ts_v f16_bits_emulated(ts_emit *e, ts_v value) {
  LLVMBuilderRef b = e->b;
  ts_v x = LLVMBuildBitCast(b, value, i32s(e), "");
  ts_v sign = LLVMBuildAnd(b, x, word(e, 0x80000000u), "");
  ts_v a = LLVMBuildXor(b, x, sign, "");

  ts_v is_nan = LLVMBuildICmp(b, LLVMIntUGT, a, word(e, 0x7f800000), "");
  ts_v large = LLVMBuildSelect(b, is_nan, word(e, 0x7e00), word(e, 0x7c00), "");

  ts_v half = ts_emit_const_float(e, TS_F32, 0.5);
  ts_v shifted = LLVMBuildFAdd(b, LLVMBuildBitCast(b, a, floats(e), ""), half, "");
  ts_v small = LLVMBuildSub(b, LLVMBuildBitCast(b, shifted, i32s(e), ""), word(e, 0x3f000000), "");

  ts_v odd = LLVMBuildAnd(b, LLVMBuildLShr(b, a, word(e, 13), ""), word(e, 1), "");
  ts_v biased = LLVMBuildAdd(b, a, word(e, (uint32_t)(15 - 127) * (1u << 23) + 0xfff), "");
  ts_v normal = LLVMBuildLShr(b, LLVMBuildAdd(b, biased, odd, ""), word(e, 13), "");

  ts_v is_large = LLVMBuildICmp(b, LLVMIntUGE, a, word(e, 0x47800000), "");
  ts_v is_small = LLVMBuildICmp(b, LLVMIntULT, a, word(e, 0x38800000), "");
  ts_v bits = LLVMBuildSelect(b, is_large, large, LLVMBuildSelect(b, is_small, small, normal, ""), "");
  bits = LLVMBuildOr(b, bits, LLVMBuildLShr(b, sign, word(e, 16), ""), "");
  return LLVMBuildTrunc(b, bits, i16s(e), "f16");
}

/* Exponent and mantissa moved into place represent the value times 2^-112, also for subnormals. */
static ts_v f16_value_emulated(ts_emit *e, ts_v bits) {
  LLVMBuilderRef b = e->b;
  ts_v x = LLVMBuildZExt(b, bits, i32s(e), "");
  ts_v sign = LLVMBuildShl(b, LLVMBuildAnd(b, x, word(e, 0x8000), ""), word(e, 16), "");
  ts_v magnitude = LLVMBuildShl(b, LLVMBuildAnd(b, x, word(e, 0x7fff), ""), word(e, 13), "");
  ts_v scale = ts_emit_const_bits(e, TS_F32, 0x77800000);
  ts_v scaled = LLVMBuildFMul(b, LLVMBuildBitCast(b, magnitude, floats(e), ""), scale, "");
  ts_v finite = LLVMBuildBitCast(b, scaled, i32s(e), "");
  ts_v special = LLVMBuildOr(b, magnitude, word(e, 0x7f800000), "");
  ts_v is_special = LLVMBuildICmp(b, LLVMIntUGE, magnitude, word(e, 0x7c00u << 13), "");
  ts_v result = LLVMBuildOr(b, LLVMBuildSelect(b, is_special, special, finite, ""), sign, "");
  return LLVMBuildBitCast(b, result, floats(e), "f16");
}

ts_v ts_emit_half_bits(ts_emit *e, ts_dtype type, ts_v value) {
  if (type == TS_BF16) return bf16_bits(e, value);
  if (e->target->isa == TS_ISA_SSE4) return f16_bits_emulated(e, value);
  return LLVMBuildBitCast(e->b, LLVMBuildFPTrunc(e->b, value, halves(e), ""), i16s(e), "f16");
}

ts_v ts_emit_half_value(ts_emit *e, ts_dtype type, ts_v bits) {
  if (type == TS_BF16) return bf16_value(e, bits);
  if (e->target->isa == TS_ISA_SSE4) return f16_value_emulated(e, bits);
  return LLVMBuildFPExt(e->b, LLVMBuildBitCast(e->b, bits, halves(e), ""), floats(e), "f16");
}
