/* Conversions between element types in register form. Each rounds once: where a conversion takes two steps, the first
 * one rounds to odd, so that the second one rounds correctly. */
#include "jit/emit/emit_op.h"

static ts_v choose(ts_emit *e, ts_v mask, ts_v a, ts_v b) { return LLVMBuildSelect(e->b, mask, a, b, ""); }

/* ---- float to integer: truncates, saturates, NaN gives 0 ----
 * LLVM's own saturating conversions of vectors are one element after the other. */

static ts_v greater(ts_emit *e, ts_v a, ts_v b) { return choose(e, LLVMBuildFCmp(e->b, LLVMRealOGT, a, b, ""), a, b); }
static ts_v lesser(ts_emit *e, ts_v a, ts_v b) { return choose(e, LLVMBuildFCmp(e->b, LLVMRealOLT, a, b, ""), a, b); }

static ts_v real_number(ts_v like, double value) {
  LLVMTypeRef vector = LLVMTypeOf(like);
  ts_v lanes[64], number = LLVMConstReal(LLVMGetElementType(vector), value);
  const unsigned count = LLVMGetVectorSize(vector);
  for (unsigned i = 0; i < count; i++) lanes[i] = number;
  return LLVMConstVector(lanes, count);
}

/* `of` is 0 where x is NaN. */
static ts_v without_nan(ts_emit *e, ts_v x, ts_v of) {
  return choose(e, LLVMBuildFCmp(e->b, LLVMRealUNO, x, x, ""), LLVMConstNull(LLVMTypeOf(of)), of);
}

static bool is_f64(ts_v x) { return LLVMGetTypeKind(LLVMGetElementType(LLVMTypeOf(x))) == LLVMDoubleTypeKind; }

/* To s32, where both limits are floats of x's type. NaN is taken out while the lanes are as wide as its mask's; a mask
 * of AVX-512 has no width. */
static ts_v bounded_to_s32(ts_emit *e, ts_v x, double low, double high) {
  const bool first = low < 0 && is_f64(x) && e->target->isa != TS_ISA_AVX512, last = low < 0 && !first;
  ts_v number = first ? without_nan(e, x, x) : x;
  ts_v near = lesser(e, greater(e, number, real_number(x, low)), real_number(x, high));
  ts_v whole = LLVMBuildFPToSI(e->b, near, ts_emit_vector_type(e, TS_S32), "");
  return last ? without_nan(e, x, whole) : whole;
}

/* The least integer is a float, but the greatest is not: one more is. NaN is taken for the least, which is 0 where
 * integers are unsigned. */
static ts_v saturate(ts_emit *e, ts_dtype to, ts_v x) {
  const bool is_signed = ts_dtype_is_signed(to);
  const int bits = ts_dtype_bits(to) - is_signed;
  const double limit = 2.0 * (double)(UINT64_C(1) << (bits - 1));
  const uint64_t highest = UINT64_MAX >> (64 - bits);
  if (to == TS_S32 && is_f64(x)) return bounded_to_s32(e, x, -limit, limit - 1);
  ts_v low = real_number(x, is_signed ? -limit : 0), past = real_number(x, limit);
  ts_v above = LLVMBuildFCmp(e->b, LLVMRealOGE, x, past, "");
  ts_v value =
      LLVMBuildCast(e->b, is_signed ? LLVMFPToSI : LLVMFPToUI, greater(e, x, low), ts_emit_vector_type(e, to), "");
  value = choose(e, above, ts_emit_const_bits(e, to, highest), value);
  return is_signed ? without_nan(e, x, value) : value;
}

static ts_v float_to_integer(ts_emit *e, ts_dtype to, ts_v x) {
  const int bits = ts_dtype_bits(to);
  const bool is_signed = ts_dtype_is_signed(to);
  if (bits >= 32) return saturate(e, to, x);
  /* There are few instructions for small types, so this converts through s32. */
  const double high = (double)((INT64_C(1) << (bits - is_signed)) - 1), low = is_signed ? -high - 1 : 0;
  ts_v wide = bounded_to_s32(e, x, low, high);
  return LLVMBuildTrunc(e->b, wide, ts_emit_vector_type(e, to), "");
}

/* ---- to half precision ---- */

/* f64 to f32, of 14 binary digits rounded to odd, which narrower formats round as they round x. So short a number is
 * exact as an f32 below the normal ones, too, unless all those formats round it to 0. */
static ts_v narrow_to_odd(ts_emit *e, ts_v x) {
  LLVMTypeRef word = ts_emit_vector_type(e, TS_U64);
  const uint64_t rest = (UINT64_C(1) << (52 - 13)) - 1;
  ts_v below = ts_emit_const_bits(e, TS_U64, rest), bits = LLVMBuildBitCast(e->b, x, word, "");
  ts_v carry =
      LLVMBuildAdd(e->b, LLVMBuildAnd(e->b, bits, below, ""), below, ""); /* the bit above, unless all were 0 */
  bits = LLVMBuildAnd(e->b, LLVMBuildOr(e->b, bits, carry, ""), ts_emit_const_bits(e, TS_U64, ~rest), "");
  return LLVMBuildFPTrunc(e->b, LLVMBuildBitCast(e->b, bits, LLVMTypeOf(x), ""), ts_emit_vector_type(e, TS_F32), "");
}

static ts_v f64_to_half(ts_emit *e, ts_dtype to, ts_v x) { return ts_emit_round_half(e, to, narrow_to_odd(e, x)); }

/* An integer that converts exactly to f64 if it has 64 bits, to f32 if it has 32, and rounds to narrower formats as `x`
 * does: its last digits are rounded to odd where it is large. */
static ts_v sticky(ts_emit *e, ts_dtype from, ts_v x) {
  const bool wide = ts_dtype_bits(from) == 64;
  const ts_dtype word = wide ? TS_U64 : TS_U32;
  const uint64_t rest = wide ? 0x7FF : 0xFF;
  uint64_t bound = UINT64_C(1) << (wide ? 53 : 24);
  ts_v below = ts_emit_const_bits(e, word, rest), kept = ts_emit_const_bits(e, word, ~rest), shifted = x;
  ts_v carry = LLVMBuildAdd(e->b, LLVMBuildAnd(e->b, x, below, ""), below, "");
  ts_v cut = LLVMBuildAnd(e->b, LLVMBuildOr(e->b, x, carry, ""), kept, "");
  if (ts_dtype_is_signed(from)) {
    shifted = LLVMBuildAdd(e->b, x, ts_emit_const_bits(e, word, bound), "");
    bound *= 2;
  }
  ts_v large = LLVMBuildICmp(e->b, LLVMIntUGT, shifted, ts_emit_const_bits(e, word, bound), "");
  return choose(e, large, cut, x);
}

/* ---- integer to float ---- */

static ts_v to_real(ts_emit *e, ts_dtype from, ts_dtype real, ts_v x) {
  LLVMOpcode op = ts_dtype_is_signed(from) ? LLVMSIToFP : LLVMUIToFP;
  return LLVMBuildCast(e->b, op, x, ts_emit_vector_type(e, real), "");
}

static ts_v integer_to_float(ts_emit *e, ts_dtype from, ts_dtype to, ts_v x) {
  if (!ts_dtype_is_narrow(to)) return to_real(e, from, to, x);
  /* f16: integers that f32 cannot represent are beyond the range of f16. */
  if (to == TS_F16 || ts_dtype_bits(from) <= 16) return ts_emit_round_half(e, to, to_real(e, from, TS_F32, x));
  x = sticky(e, from, x);
  if (ts_dtype_bits(from) == 32) return ts_emit_round_half(e, to, to_real(e, from, TS_F32, x));
  return f64_to_half(e, to, to_real(e, from, TS_F64, x));
}

static ts_v float_to_float(ts_emit *e, ts_dtype from, ts_dtype to, ts_v x) {
  if (ts_dtype_is_narrow(to)) return from == TS_F64 ? f64_to_half(e, to, x) : ts_emit_round_half(e, to, x);
  if (to == TS_F64) return from == TS_F64 ? x : LLVMBuildFPExt(e->b, x, ts_emit_vector_type(e, to), "");
  return from == TS_F64 ? LLVMBuildFPTrunc(e->b, x, ts_emit_vector_type(e, to), "") : x;
}

static ts_v integer_to_integer(ts_emit *e, ts_dtype from, ts_dtype to, ts_v x) {
  LLVMTypeRef type = ts_emit_vector_type(e, to);
  size_t have = ts_dtype_size(from), want = ts_dtype_size(to);
  if (want == have) return x;
  if (want < have) return LLVMBuildTrunc(e->b, x, type, "");
  return ts_dtype_is_signed(from) ? LLVMBuildSExt(e->b, x, type, "") : LLVMBuildZExt(e->b, x, type, "");
}

/* ---- small types ---- */

static bool is_f8(ts_dtype type) { return ts_dtype_is_small(type) && ts_dtype_is_float(type); }

/* To a float of 8 bits, by way of f32. Integers that f32 cannot represent are out of range of these floats. */
static ts_v to_f8(ts_emit *e, ts_dtype from, ts_dtype to, ts_v x) {
  if (!ts_dtype_is_float(from)) x = to_real(e, from, TS_F32, x);
  return ts_emit_f8_bits(e, to, from == TS_F64 ? narrow_to_odd(e, x) : x);
}

ts_v ts_emit_convert(ts_emit *e, ts_dtype from, ts_dtype to, ts_v value) {
  if (from == to) return value;
  if (is_f8(from)) return ts_emit_convert(e, TS_F32, to, ts_emit_f8_value(e, from, value));
  if (is_f8(to)) return to_f8(e, from, to, value);
  if (ts_dtype_is_small(to) && !ts_dtype_is_float(from))
    return ts_emit_wrap(e, to, integer_to_integer(e, from, to, value));
  if (ts_dtype_is_float(from)) {
    return ts_dtype_is_float(to) ? float_to_float(e, from, to, value) : float_to_integer(e, to, value);
  }
  return ts_dtype_is_float(to) ? integer_to_float(e, from, to, value) : integer_to_integer(e, from, to, value);
}

/* ---- bitcast ---- */

ts_v ts_emit_bitcast(ts_emit *e, ts_dtype from, ts_dtype to, ts_v value) {
  if (from == to) return value;
  if (ts_dtype_is_small(from) && !is_f8(from)) return ts_emit_wrap(e, to, value);
  if (is_f8(from) || is_f8(to)) return value;
  if (ts_dtype_is_narrow(from)) value = ts_emit_half_bits(e, from, value);
  if (ts_dtype_is_narrow(to)) return ts_emit_half_value(e, to, value);
  return LLVMBuildBitCast(e->b, value, ts_emit_vector_type(e, to), "");
}
