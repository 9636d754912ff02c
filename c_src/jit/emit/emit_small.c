/* Vector conversions of small types, whose register form is a vector of bytes: floats of 8 bits, and integers that wrap
 * within a byte. The float formats are defined in tensor/half.c. */
#include "jit/emit/emit.h"

/* The parts of a format that conversions need; as bits of f32 where nothing else is said. */
typedef struct format {
  int cut;           /* mantissa bits of f32 that the format lacks */
  int bias;          /* of the exponent */
  uint32_t magic;    /* the float with the unit of the format's subnormal numbers */
  uint32_t normal;   /* the smallest normal number */
  uint32_t large;    /* from here on the result is `infinity` */
  uint32_t infinity; /* in the format, as is `nan` */
  uint32_t nan;
  uint32_t scale; /* 2^(127 - bias) */
} format;

static format get_format(ts_dtype type) {
  if (type == TS_F8) return (format){21, 15, 0x43000000, 0x38800000, 0x47800000, 0x7C, 0x7E, 0x77800000};
  return (format){20, 7, 0x46800000, 0x3C800000, 0x43E80001, 0x7F, 0x7F, 0x7B800000};
}

static ts_v word(ts_emit *e, uint32_t value) { return ts_emit_const_bits(e, TS_U32, value); }
static LLVMTypeRef words(ts_emit *e) { return ts_emit_vector_type(e, TS_U32); }
static LLVMTypeRef floats(ts_emit *e) { return ts_emit_vector_type(e, TS_F32); }

/* Rounds the magnitude `a` by an integer addition. */
static ts_v round_normal(ts_emit *e, const format *f, ts_v a) {
  ts_v odd = LLVMBuildAnd(e->b, LLVMBuildLShr(e->b, a, word(e, (uint32_t)f->cut), ""), word(e, 1), "");
  uint32_t half = (1u << (f->cut - 1)) - 1;
  ts_v biased = LLVMBuildAdd(e->b, a, word(e, (uint32_t)(f->bias - 127) * (1u << 23) + half), "");
  return LLVMBuildLShr(e->b, LLVMBuildAdd(e->b, biased, odd, ""), word(e, (uint32_t)f->cut), "");
}

/* Rounds a magnitude below the normal numbers by a float addition, which aligns it. */
static ts_v round_subnormal(ts_emit *e, const format *f, ts_v a) {
  ts_v magic = ts_emit_const_bits(e, TS_F32, f->magic);
  ts_v sum = LLVMBuildFAdd(e->b, LLVMBuildBitCast(e->b, a, floats(e), ""), magic, "");
  return LLVMBuildSub(e->b, LLVMBuildBitCast(e->b, sum, words(e), ""), word(e, f->magic), "");
}

ts_v ts_emit_f8_bits(ts_emit *e, ts_dtype type, ts_v value) {
  format f = get_format(type);
  LLVMBuilderRef b = e->b;
  ts_v x = LLVMBuildBitCast(b, value, words(e), "");
  ts_v sign = LLVMBuildAnd(b, x, word(e, 0x80000000u), ""), a = LLVMBuildXor(b, x, sign, "");
  ts_v is_nan = LLVMBuildICmp(b, LLVMIntUGT, a, word(e, 0x7F800000), "");
  ts_v is_large = LLVMBuildICmp(b, LLVMIntUGE, a, word(e, f.large), "");
  ts_v is_small = LLVMBuildICmp(b, LLVMIntULT, a, word(e, f.normal), "");
  ts_v large = LLVMBuildSelect(b, is_nan, word(e, f.nan), word(e, f.infinity), "");
  ts_v bits = LLVMBuildSelect(b, is_small, round_subnormal(e, &f, a), round_normal(e, &f, a), "");
  bits = LLVMBuildSelect(b, is_large, large, bits, "");
  bits = LLVMBuildOr(b, bits, LLVMBuildLShr(b, sign, word(e, 24), ""), "");
  return LLVMBuildTrunc(b, bits, ts_emit_vector_type(e, TS_U8), "f8");
}

/* Exponent and mantissa moved into place represent the value times 2^(bias - 127), also for subnormals. */
ts_v ts_emit_f8_value(ts_emit *e, ts_dtype type, ts_v bits) {
  format f = get_format(type);
  LLVMBuilderRef b = e->b;
  ts_v x = LLVMBuildZExt(b, bits, words(e), ""), magnitude = LLVMBuildAnd(b, x, word(e, 0x7F), "");
  ts_v sign = LLVMBuildShl(b, LLVMBuildAnd(b, x, word(e, 0x80), ""), word(e, 24), "");
  ts_v moved = LLVMBuildShl(b, magnitude, word(e, (uint32_t)f.cut), "");
  ts_v scale = ts_emit_const_bits(e, TS_F32, f.scale);
  ts_v scaled = LLVMBuildFMul(b, LLVMBuildBitCast(b, moved, floats(e), ""), scale, "");
  ts_v special = type == TS_F8 ? LLVMBuildOr(b, moved, word(e, 0x7F800000), "") : word(e, 0x7FC00000);
  ts_v is_special = LLVMBuildICmp(b, LLVMIntUGE, magnitude, word(e, f.infinity), "");
  ts_v finite = LLVMBuildBitCast(b, scaled, words(e), "");
  ts_v result = LLVMBuildOr(b, LLVMBuildSelect(b, is_special, special, finite, ""), sign, "");
  return LLVMBuildBitCast(b, result, floats(e), "f8");
}

ts_v ts_emit_wrap(ts_emit *e, ts_dtype type, ts_v bytes) {
  int unused = 8 - ts_dtype_bits(type);
  if (!ts_dtype_is_signed(type)) return LLVMBuildAnd(e->b, bytes, ts_emit_const_int(e, TS_U8, 0xFF >> unused), "");
  ts_v count = ts_emit_const_int(e, TS_U8, unused);
  return LLVMBuildAShr(e->b, LLVMBuildShl(e->b, bytes, count, ""), count, "");
}
