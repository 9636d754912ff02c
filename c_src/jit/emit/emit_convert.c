/* Conversions between element types in register form. Each rounds once: where a conversion takes two steps, the first
 * one rounds to odd, so that the second one rounds correctly. */
#include "jit/emit/emit_op.h"

static ts_v choose(ts_emit *e, ts_v mask, ts_v a, ts_v b) { return LLVMBuildSelect(e->b, mask, a, b, ""); }

/* ---- float to integer: truncates, saturates, NaN gives 0 ---- */

static ts_v saturate(ts_emit *e, bool is_signed, ts_dtype to, ts_v x) {
  LLVMTypeRef types[2] = {ts_emit_vector_type(e, to), LLVMTypeOf(x)};
  return ts_emit_intrinsic_of(e, is_signed ? "llvm.fptosi.sat" : "llvm.fptoui.sat", types, 2, &x, 1);
}

static ts_v float_to_integer(ts_emit *e, ts_dtype to, ts_v x) {
  int bits = ts_dtype_bits(to);
  bool is_signed = ts_dtype_is_signed(to);
  if (bits >= 32) return saturate(e, is_signed, to, x);
  /* There are few instructions for small types, so this converts through s32. */
  int64_t high = is_signed ? (INT64_C(1) << (bits - 1)) - 1 : (INT64_C(1) << bits) - 1;
  int64_t low = is_signed ? -high - 1 : 0;
  ts_v wide = saturate(e, true, TS_S32, x);
  wide = ts_emit_intrinsic(e, "llvm.smin", NULL, (ts_v[]){wide, ts_emit_const_int(e, TS_S32, high)}, 2);
  wide = ts_emit_intrinsic(e, "llvm.smax", NULL, (ts_v[]){wide, ts_emit_const_int(e, TS_S32, low)}, 2);
  return LLVMBuildTrunc(e->b, wide, ts_emit_vector_type(e, to), "");
}

/* ---- to half precision ---- */

/* f64 to f32, rounded to odd. */
static ts_v narrow_to_odd(ts_emit *e, ts_v x) {
  LLVMTypeRef word = ts_emit_vector_type(e, TS_U32);
  ts_v near = LLVMBuildFPTrunc(e->b, x, ts_emit_vector_type(e, TS_F32), "");
  ts_v back = LLVMBuildFPExt(e->b, near, LLVMTypeOf(x), "");
  ts_v inexact = LLVMBuildFCmp(e->b, LLVMRealONE, back, x, "");
  ts_v away = LLVMBuildFCmp(e->b, LLVMRealOGT, ts_emit_intrinsic(e, "llvm.fabs", NULL, &back, 1),
                            ts_emit_intrinsic(e, "llvm.fabs", NULL, &x, 1), "");
  ts_v bits = LLVMBuildBitCast(e->b, near, word, "");
  bits = LLVMBuildAdd(e->b, bits, LLVMBuildSExt(e->b, away, word, ""), ""); /* one unit towards zero */
  bits = LLVMBuildOr(e->b, bits, LLVMBuildZExt(e->b, inexact, word, ""), "");
  return LLVMBuildBitCast(e->b, bits, LLVMTypeOf(near), "");
}

static ts_v f64_to_half(ts_emit *e, ts_dtype to, ts_v x) { return ts_emit_round_half(e, to, narrow_to_odd(e, x)); }

/* A 64-bit integer that converts to f64 exactly and rounds to narrower formats as `x` does. */
static ts_v sticky(ts_emit *e, ts_dtype from, ts_v x) {
  ts_v low = LLVMBuildAnd(e->b, x, ts_emit_const_bits(e, TS_U64, 0x7FF), "");
  ts_v rest = LLVMBuildICmp(e->b, LLVMIntNE, low, LLVMConstNull(LLVMTypeOf(x)), "");
  ts_v odd = choose(e, rest, ts_emit_const_bits(e, TS_U64, 0x800), LLVMConstNull(LLVMTypeOf(x)));
  ts_v cut = LLVMBuildOr(e->b, LLVMBuildAnd(e->b, x, ts_emit_const_bits(e, TS_U64, ~UINT64_C(0x7FF)), ""), odd, "");
  ts_v shifted = x;
  uint64_t bound = UINT64_C(1) << 53;
  if (ts_dtype_is_signed(from)) {
    shifted = LLVMBuildAdd(e->b, x, ts_emit_const_bits(e, TS_U64, bound), "");
    bound *= 2;
  }
  ts_v large = LLVMBuildICmp(e->b, LLVMIntUGT, shifted, ts_emit_const_bits(e, TS_U64, bound), "");
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
  if (ts_dtype_bits(from) == 64) x = sticky(e, from, x);
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
