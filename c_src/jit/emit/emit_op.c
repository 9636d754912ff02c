/* Elementwise ops on vectors in register form. Meanings: ir/op.def and kernel/ref/ref_scalar.c. No fast-math flags:
 * each op rounds to its own type. Truth values are u8 vectors, made by zero-extending a mask; an op that needs the mask
 * looks through that extension. */
#include "jit/emit/emit_op.h"
#include "jit/math/vecmath.h"

#include <math.h>

static ts_v call1(ts_emit *e, const char *name, ts_v x) { return ts_emit_intrinsic(e, name, NULL, &x, 1); }

static ts_v call2(ts_emit *e, const char *name, ts_v x, ts_v y) {
  return ts_emit_intrinsic(e, name, NULL, (ts_v[]){x, y}, 2);
}

static ts_v zero_of(ts_v x) { return LLVMConstNull(LLVMTypeOf(x)); }
static ts_v ones_of(ts_v x) { return LLVMConstAllOnes(LLVMTypeOf(x)); }

static ts_v choose(ts_emit *e, ts_v mask, ts_v a, ts_v b) { return LLVMBuildSelect(e->b, mask, a, b, ""); }

/* ---- truth values ---- */

ts_v ts_emit_mask(ts_emit *e, ts_dtype type, ts_v x) {
  if (LLVMIsAZExtInst(x)) {
    ts_v source = LLVMGetOperand(x, 0);
    if (LLVMGetIntTypeWidth(LLVMGetElementType(LLVMTypeOf(source))) == 1) return source;
  }
  if (ts_dtype_is_float(type)) return LLVMBuildFCmp(e->b, LLVMRealUNE, x, zero_of(x), "");
  return LLVMBuildICmp(e->b, LLVMIntNE, x, zero_of(x), "");
}

ts_v ts_emit_truth(ts_emit *e, ts_v mask) { return LLVMBuildZExt(e->b, mask, ts_emit_vector_type(e, TS_U8), ""); }

/* ---- rounding to half precision ---- */

static ts_v bits_of(ts_emit *e, ts_v x) { return LLVMBuildBitCast(e->b, x, ts_emit_vector_type(e, TS_U32), ""); }
static ts_v float_of(ts_emit *e, ts_v x) { return LLVMBuildBitCast(e->b, x, ts_emit_vector_type(e, TS_F32), ""); }
static ts_v u32(ts_emit *e, uint32_t value) { return ts_emit_const_bits(e, TS_U32, value); }

/* Rounds the upper 16 bits to nearest even; the others are any. A NaN whose lower 16 bits are 0 keeps its bits. */
static ts_v near_bf16(ts_emit *e, ts_v bits) {
  ts_v odd = LLVMBuildAnd(e->b, LLVMBuildLShr(e->b, bits, u32(e, 16), ""), u32(e, 1), "");
  return LLVMBuildAdd(e->b, bits, LLVMBuildAdd(e->b, odd, u32(e, 0x7FFF), ""), "");
}

/* Rounds the upper 16 bits of the f32 in place. */
static ts_v round_bf16(ts_emit *e, ts_v x) {
  ts_v bits = bits_of(e, x), upper = u32(e, 0xFFFF0000), near = near_bf16(e, bits);
  ts_v quiet = LLVMBuildOr(e->b, bits, u32(e, 0x400000), "");
  ts_v nan = LLVMBuildFCmp(e->b, LLVMRealUNO, x, x, "");
  return float_of(e, LLVMBuildAnd(e->b, choose(e, nan, quiet, near), upper, ""));
}

ts_v ts_emit_round_half(ts_emit *e, ts_dtype type, ts_v value) {
  if (type == TS_BF16) return round_bf16(e, value);
  return ts_emit_half_value(e, type, ts_emit_half_bits(e, type, value));
}

static ts_v rounded(ts_emit *e, ts_dtype type, ts_v value) {
  return ts_dtype_is_narrow(type) ? ts_emit_round_half(e, type, value) : value;
}

/* The same of a sum, product or quotient of two numbers of the type, or a root. Its NaNs are an operand or the
 * machine's own: their lower bits are 0. */
static ts_v rounded_arithmetic(ts_emit *e, ts_dtype type, ts_v value) {
  if (type != TS_BF16) return rounded(e, type, value);
  return float_of(e, LLVMBuildAnd(e->b, near_bf16(e, bits_of(e, value)), u32(e, 0xFFFF0000), ""));
}

/* ---- unary ---- */

static ts_v float_sign(ts_emit *e, ts_dtype type, ts_v x) {
  ts_v one = ts_emit_const_float(e, type, 1);
  ts_v keep = LLVMBuildFCmp(e->b, LLVMRealUEQ, x, zero_of(x), ""); /* zero or NaN */
  return choose(e, keep, x, call2(e, "llvm.copysign", one, x));
}

static ts_v integer_sign(ts_emit *e, ts_dtype type, ts_v x) {
  ts_v one = ts_emit_const_int(e, type, 1);
  ts_v nonzero = LLVMBuildICmp(e->b, LLVMIntNE, x, zero_of(x), "");
  ts_v sign = choose(e, nonzero, one, zero_of(x));
  if (ts_dtype_is_unsigned(type)) return sign;
  return choose(e, LLVMBuildICmp(e->b, LLVMIntSLT, x, zero_of(x), ""), ones_of(x), sign);
}

static ts_v with_flag(ts_emit *e, const char *name, ts_v x) {
  ts_v no = LLVMConstInt(LLVMInt1TypeInContext(e->context), 0, false);
  return ts_emit_intrinsic(e, name, LLVMTypeOf(x), (ts_v[]){x, no}, 2);
}

/* NULL for ops without a case, as below. */
static ts_v emit_unary(ts_emit *e, ts_opcode op, ts_dtype type, ts_v x) {
  bool is_float = ts_dtype_is_float(type);
  switch ((ts_ops_UNARY)op) {
  case TS_OP_ABS:
    if (is_float) return call1(e, "llvm.fabs", x);
    return ts_dtype_is_signed(type) ? with_flag(e, "llvm.abs", x) : x;
  case TS_OP_NEGATE: return is_float ? LLVMBuildFNeg(e->b, x, "") : LLVMBuildNeg(e->b, x, "");
  case TS_OP_SIGN: return is_float ? float_sign(e, type, x) : integer_sign(e, type, x);
  case TS_OP_CEIL: return is_float ? call1(e, "llvm.ceil", x) : x;
  case TS_OP_FLOOR: return is_float ? call1(e, "llvm.floor", x) : x;
  case TS_OP_ROUND: return is_float ? call1(e, "llvm.round", x) : x;
  }
  switch ((ts_ops_UNARY_INTEGER)op) {
  case TS_OP_NOT: return LLVMBuildNot(e->b, x, "");
  case TS_OP_CLZ: return with_flag(e, "llvm.ctlz", x);
  case TS_OP_POPCOUNT: return call1(e, "llvm.ctpop", x);
  }
  return NULL;
}

static ts_v emit_predicate(ts_emit *e, ts_opcode op, ts_dtype type, ts_v x) {
  bool is_float = ts_dtype_is_float(type);
  ts_v never = LLVMConstNull(ts_emit_vector_type(e, TS_U8)), infinity;
  switch ((ts_ops_PREDICATE)op) {
  case TS_OP_IS_NAN: return is_float ? ts_emit_truth(e, LLVMBuildFCmp(e->b, LLVMRealUNO, x, x, "")) : never;
  case TS_OP_IS_INFINITY:
    if (!is_float) return never;
    infinity = ts_emit_const_float(e, type, INFINITY);
    return ts_emit_truth(e, LLVMBuildFCmp(e->b, LLVMRealOEQ, call1(e, "llvm.fabs", x), infinity, ""));
  }
  return NULL;
}

/* ---- integer quotient and remainder ---- */

/* Integers of at most 16 bits divide exactly in f32, and integers of 32 bits in f64: distinct quotients differ by more
 * than the rounding error. */
static ts_dtype real_of(ts_dtype type) { return ts_dtype_bits(type) == 32 ? TS_F64 : TS_F32; }

static ts_v to_real(ts_emit *e, ts_dtype type, ts_v x) {
  LLVMTypeRef real = ts_emit_vector_type(e, real_of(type));
  return LLVMBuildCast(e->b, ts_dtype_is_signed(type) ? LLVMSIToFP : LLVMUIToFP, x, real, "");
}

static bool is_splat(ts_v x) {
  if (!LLVMIsAShuffleVectorInst(x)) return false;
  for (unsigned i = 0; i < LLVMGetNumMaskElements(x); i++)
    if (LLVMGetMaskValue(x, (int)i) != 0) return false;
  return true;
}

/* 1 / b of a divisor that all elements share, computed where the divisor is, outside of the loop; NULL of another one.
 */
static ts_v shared_reciprocal(ts_emit *e, ts_dtype type, ts_v b) {
  if (!is_splat(b)) return NULL;
  LLVMBasicBlockRef here = LLVMGetInsertBlock(e->b);
  LLVMPositionBuilderBefore(e->b, LLVMGetNextInstruction(b));
  ts_v zero = LLVMBuildICmp(e->b, LLVMIntEQ, b, zero_of(b), "");
  ts_v divisor = to_real(e, type, choose(e, zero, ts_emit_const_int(e, type, 1), b));
  ts_v reciprocal = LLVMBuildFDiv(e->b, ts_emit_const_float(e, real_of(type), 1), divisor, "reciprocal");
  LLVMPositionBuilderAtEnd(e->b, here);
  return reciprocal;
}

/* The quotient, before it is truncated. A multiple of the divisor may be rounded down, so a half is added to the
 * dividend:
 * (|a| + 1/2) / |b| is 1/(2|b|) away from every integer, and the rounding error is less. */
static ts_v real_quotient(ts_emit *e, ts_dtype type, ts_v a, ts_v b) {
  ts_v reciprocal = shared_reciprocal(e, type, b), x = to_real(e, type, a);
  if (!reciprocal) return LLVMBuildFDiv(e->b, x, to_real(e, type, b), "");
  ts_v half = ts_emit_const_float(e, real_of(type), 0.5);
  if (ts_dtype_is_signed(type)) half = call2(e, "llvm.copysign", half, x);
  return LLVMBuildFMul(e->b, LLVMBuildFAdd(e->b, x, half, ""), reciprocal, "");
}

static ts_v divide_as_float(ts_emit *e, ts_dtype type, ts_v a, ts_v b) {
  bool is_signed = ts_dtype_is_signed(type), wide = ts_dtype_bits(type) == 32;
  LLVMTypeRef whole = ts_emit_vector_type(e, TS_S32);
  ts_v q = real_quotient(e, type, a, b);
  bool fits = is_signed || !wide;
  ts_v result = LLVMBuildCast(e->b, fits ? LLVMFPToSI : LLVMFPToUI, q, whole, "");
  return wide ? result : LLVMBuildTrunc(e->b, result, LLVMTypeOf(a), "");
}

/* From so many lanes on, vectors of f64 are faster than one division after another. */
#define WIDE_LANES 4
/* f64 holds integers of 64 bits with numbers from -2^51 up to 2^51: added to 1.5 * 2^52, they are its lowest bits. */
#define SMALL_BITS 51
static ts_v magic(ts_emit *e) { return ts_emit_const_float(e, TS_F64, 0x1.8p52); }

static ts_v magic_bits(ts_emit *e, ts_v like) { return LLVMBuildBitCast(e->b, magic(e), LLVMTypeOf(like), ""); }

static ts_v small_to_f64(ts_emit *e, ts_v x) {
  ts_v bits = LLVMBuildAdd(e->b, x, magic_bits(e, x), "");
  return LLVMBuildFSub(e->b, LLVMBuildBitCast(e->b, bits, ts_emit_vector_type(e, TS_F64), ""), magic(e), "");
}

static ts_v divide_small(ts_emit *e, ts_v a, ts_v b) {
  ts_v q = call1(e, "llvm.trunc", LLVMBuildFDiv(e->b, small_to_f64(e, a), small_to_f64(e, b), ""));
  ts_v bits = LLVMBuildBitCast(e->b, LLVMBuildFAdd(e->b, q, magic(e), ""), LLVMTypeOf(a), "");
  return LLVMBuildSub(e->b, bits, magic_bits(e, a), "");
}

static ts_v divide_by_lanes(ts_emit *e, bool is_signed, ts_v a, ts_v b) {
  return is_signed ? LLVMBuildSDiv(e->b, a, b, "") : LLVMBuildUDiv(e->b, a, b, "");
}

/* Integers of 64 bits that are small divide exactly in f64, as those of 32 bits do. A branch asks whether all lanes'
 * are. */
static ts_v divide_wide(ts_emit *e, ts_dtype type, ts_v a, ts_v b) {
  const bool is_signed = ts_dtype_is_signed(type);
  if (e->lanes < WIDE_LANES) return divide_by_lanes(e, is_signed, a, b);
  ts_v low = ts_emit_const_bits(e, type, is_signed ? UINT64_C(1) << SMALL_BITS : 0);
  ts_v both = LLVMBuildOr(e->b, LLVMBuildAdd(e->b, a, low, ""), LLVMBuildAdd(e->b, b, low, ""), "");
  ts_v above = LLVMBuildLShr(e->b, both, ts_emit_const_bits(e, type, is_signed ? SMALL_BITS + 1 : SMALL_BITS), "");
  ts_v any = call1(e, "llvm.vector.reduce.or", LLVMBuildICmp(e->b, LLVMIntNE, above, zero_of(above), ""));
  LLVMBasicBlockRef from[2] = {LLVMAppendBasicBlockInContext(e->context, e->function, "divide_large"),
                               LLVMAppendBasicBlockInContext(e->context, e->function, "divide_small")};
  LLVMBasicBlockRef done = LLVMAppendBasicBlockInContext(e->context, e->function, "divided");
  LLVMBuildCondBr(e->b, any, from[0], from[1]);
  LLVMPositionBuilderAtEnd(e->b, from[0]);
  ts_v quotients[2] = {divide_by_lanes(e, is_signed, a, b), NULL};
  LLVMBuildBr(e->b, done);
  LLVMPositionBuilderAtEnd(e->b, from[1]);
  quotients[1] = divide_small(e, a, b);
  LLVMBuildBr(e->b, done);
  LLVMPositionBuilderAtEnd(e->b, done);
  ts_v q = LLVMBuildPhi(e->b, LLVMTypeOf(a), "");
  LLVMAddIncoming(q, quotients, from, 2);
  return q;
}

/* a / b where b is not 0; for b = 0 the result is arbitrary, but the division does not trap. */
static ts_v quotient(ts_emit *e, ts_dtype type, ts_v a, ts_v b, ts_v zero) {
  bool is_signed = ts_dtype_is_signed(type);
  ts_v minus = is_signed ? LLVMBuildICmp(e->b, LLVMIntEQ, b, ones_of(b), "") : NULL;
  ts_v unsafe = minus ? LLVMBuildOr(e->b, zero, minus, "") : zero;
  ts_v one = ts_emit_const_int(e, type, 1);
  ts_v q = ts_dtype_bits(type) < 64 ? divide_as_float(e, type, a, is_splat(b) ? b : choose(e, unsafe, one, b))
                                    : divide_wide(e, type, a, choose(e, unsafe, one, b));
  return minus ? choose(e, minus, LLVMBuildNeg(e->b, a, ""), q) : q;
}

static ts_v integer_quotient(ts_emit *e, ts_dtype type, ts_v a, ts_v b) {
  ts_v zero = LLVMBuildICmp(e->b, LLVMIntEQ, b, zero_of(b), "");
  return choose(e, zero, ones_of(a), quotient(e, type, a, b, zero));
}

static ts_v integer_remainder(ts_emit *e, ts_dtype type, ts_v a, ts_v b) {
  ts_v zero = LLVMBuildICmp(e->b, LLVMIntEQ, b, zero_of(b), "");
  ts_v rest = LLVMBuildSub(e->b, a, LLVMBuildMul(e->b, quotient(e, type, a, b, zero), b, ""), "");
  return choose(e, zero, a, rest);
}

/* ---- loops inside a body ---- */

typedef struct lane_loop {
  LLVMBasicBlockRef head, done;
  ts_v phi[3];
} lane_loop;

/* A loop over whole vectors with `count` loop variables, for ops whose number of steps differs widely between lanes. */
static lane_loop loop_begin(ts_emit *e, const ts_v *initial, int count) {
  LLVMBasicBlockRef before = LLVMGetInsertBlock(e->b);
  lane_loop loop = {LLVMAppendBasicBlockInContext(e->context, e->function, "steps"),
                    LLVMAppendBasicBlockInContext(e->context, e->function, "steps_done"),
                    {0}};
  LLVMBuildBr(e->b, loop.head);
  LLVMPositionBuilderAtEnd(e->b, loop.head);
  for (int i = 0; i < count; i++) {
    ts_v value = initial[i];
    loop.phi[i] = LLVMBuildPhi(e->b, LLVMTypeOf(value), "");
    LLVMAddIncoming(loop.phi[i], &value, &before, 1);
  }
  return loop;
}

/* Repeats the loop while any lane of `mask` is set. */
static void loop_end(ts_emit *e, lane_loop *loop, const ts_v *next, int count, ts_v mask) {
  LLVMBasicBlockRef here = LLVMGetInsertBlock(e->b);
  for (int i = 0; i < count; i++) {
    ts_v value = next[i];
    LLVMAddIncoming(loop->phi[i], &value, &here, 1);
  }
  LLVMBuildCondBr(e->b, call1(e, "llvm.vector.reduce.or", mask), loop->head, loop->done);
  LLVMPositionBuilderAtEnd(e->b, loop->done);
}

/* ---- float remainder ---- */

/* The quotient without its lowest `cleared` bits, minus `less` units of the lowest bit that is left. */
static ts_v leading_bits(ts_emit *e, ts_v q, int cleared, uint64_t less) {
  ts_v bits = LLVMBuildBitCast(e->b, q, ts_emit_vector_type(e, TS_U64), "");
  bits = LLVMBuildAnd(e->b, bits, ts_emit_const_bits(e, TS_U64, ~UINT64_C(0) << cleared), "");
  bits = LLVMBuildSub(e->b, bits, ts_emit_const_bits(e, TS_U64, less << cleared), "");
  return LLVMBuildBitCast(e->b, bits, ts_emit_vector_type(e, TS_F64), "");
}

/* r - n y. `from_f32`: n and y have at most 24 bits each, so that their product is exact in f64. */
static ts_v take_off(ts_emit *e, ts_v r, ts_v n, ts_v y, bool from_f32) {
  if (from_f32) return LLVMBuildFSub(e->b, r, LLVMBuildFMul(e->b, n, y, ""), "");
  return ts_emit_intrinsic(e, "llvm.fma", NULL, (ts_v[]){LLVMBuildFNeg(e->b, n, ""), y, r}, 3);
}

/* One step of |a| mod |b|: subtracts a multiple n of y from r such that the remainder is exact and not negative. With
 * `u` the unit of n's last bit and 2^k <= y, the remainder is a multiple of u 2^(k - 52) below u y < u 2^(k + 1): 53
 * bits. If the quotient was rounded up, the next lower n is used. */
static ts_v remainder_step(ts_emit *e, ts_v r, ts_v y, bool from_f32) {
  ts_v exact_below = ts_emit_const_float(e, TS_F64, from_f32 ? 0x1p24 : 0x1p50);
  int cleared = from_f32 ? 29 : 4;
  ts_v q = LLVMBuildFDiv(e->b, r, y, "");
  /* The quotient may be as large as 2^2098, so first reduce modulo a large multiple of y. */
  for (int i = 0; i < 2 && !from_f32; i++) {
    ts_v over = LLVMBuildFCmp(e->b, LLVMRealOEQ, q, ts_emit_const_float(e, TS_F64, INFINITY), "");
    y = choose(e, over, LLVMBuildFMul(e->b, y, ts_emit_const_float(e, TS_F64, 0x1p1000), ""), y);
    q = LLVMBuildFDiv(e->b, r, y, "");
  }
  ts_v small = LLVMBuildFCmp(e->b, LLVMRealOLT, q, exact_below, ""), whole = call1(e, "llvm.trunc", q);
  ts_v n = choose(e, small, whole, leading_bits(e, q, cleared, 0));
  ts_v lower = LLVMBuildFSub(e->b, whole, ts_emit_const_float(e, TS_F64, 1), "");
  lower = choose(e, small, lower, leading_bits(e, q, cleared, 1));
  ts_v rest = take_off(e, r, n, y, from_f32);
  ts_v negative = LLVMBuildFCmp(e->b, LLVMRealOLT, rest, zero_of(rest), "");
  return choose(e, negative, take_off(e, r, lower, y, from_f32), rest);
}

static ts_v float_remainder(ts_emit *e, ts_dtype type, ts_v a, ts_v b) {
  bool from_f32 = type != TS_F64;
  LLVMTypeRef wide = ts_emit_vector_type(e, TS_F64);
  ts_v infinity = ts_emit_const_float(e, TS_F64, INFINITY);
  ts_v x = from_f32 ? LLVMBuildFPExt(e->b, a, wide, "") : a, y = from_f32 ? LLVMBuildFPExt(e->b, b, wide, "") : b;
  ts_v r0 = call1(e, "llvm.fabs", x);
  y = call1(e, "llvm.fabs", y);
  ts_v finite = LLVMBuildFCmp(e->b, LLVMRealOLT, r0, infinity, "");
  ts_v valid = LLVMBuildAnd(e->b, finite, LLVMBuildFCmp(e->b, LLVMRealOGT, y, zero_of(y), ""), "");
  ts_v more = LLVMBuildAnd(e->b, valid, LLVMBuildFCmp(e->b, LLVMRealOGE, r0, y, ""), "");
  lane_loop loop = loop_begin(e, (ts_v[]){r0, more}, 2);
  ts_v step = remainder_step(e, loop.phi[0], y, from_f32);
  ts_v r = choose(e, loop.phi[1], step, loop.phi[0]);
  more = LLVMBuildAnd(e->b, valid, LLVMBuildFCmp(e->b, LLVMRealOGE, r, y, ""), "");
  loop_end(e, &loop, (ts_v[]){r, more}, 2, more);
  r = choose(e, valid, call2(e, "llvm.copysign", r, x), ts_emit_const_float(e, TS_F64, NAN));
  return from_f32 ? LLVMBuildFPTrunc(e->b, r, LLVMTypeOf(a), "") : r;
}

/* ---- integer power ---- */

static ts_v negative_power(ts_emit *e, ts_dtype type, ts_v base, ts_v exponent) {
  ts_v one = ts_emit_const_int(e, type, 1);
  ts_v odd = LLVMBuildICmp(e->b, LLVMIntNE, LLVMBuildAnd(e->b, exponent, one, ""), zero_of(one), "");
  ts_v of_minus_one = choose(e, odd, ones_of(one), one);
  ts_v result = choose(e, LLVMBuildICmp(e->b, LLVMIntEQ, base, ones_of(base), ""), of_minus_one, zero_of(base));
  return choose(e, LLVMBuildICmp(e->b, LLVMIntEQ, base, one, ""), one, result);
}

static ts_v integer_power(ts_emit *e, ts_dtype type, ts_v base, ts_v exponent) {
  ts_v one = ts_emit_const_int(e, type, 1), zero = zero_of(base), negative = NULL, left = exponent;
  if (ts_dtype_is_signed(type)) {
    negative = LLVMBuildICmp(e->b, LLVMIntSLT, exponent, zero, "");
    left = choose(e, negative, zero, exponent);
  }
  lane_loop loop = loop_begin(e, (ts_v[]){one, base, left}, 3);
  ts_v odd = LLVMBuildICmp(e->b, LLVMIntNE, LLVMBuildAnd(e->b, loop.phi[2], one, ""), zero, "");
  ts_v result = choose(e, odd, LLVMBuildMul(e->b, loop.phi[0], loop.phi[1], ""), loop.phi[0]);
  ts_v square = LLVMBuildMul(e->b, loop.phi[1], loop.phi[1], "");
  left = LLVMBuildLShr(e->b, loop.phi[2], one, "");
  ts_v more = LLVMBuildICmp(e->b, LLVMIntNE, left, zero, "");
  loop_end(e, &loop, (ts_v[]){result, square, left}, 3, more);
  return negative ? choose(e, negative, negative_power(e, type, base, exponent), result) : result;
}

/* ---- other binary ---- */

static ts_v emit_shift(ts_emit *e, ts_opcode op, ts_dtype type, ts_v a, ts_v amount) {
  ts_v width = ts_emit_const_int(e, type, ts_dtype_bits(type));
  ts_v within = LLVMBuildICmp(e->b, LLVMIntULT, amount, width, "");
  if (op == TS_OP_SHIFT_LEFT) return choose(e, within, LLVMBuildShl(e->b, a, amount, ""), zero_of(a));
  if (ts_dtype_is_unsigned(type)) return choose(e, within, LLVMBuildLShr(e->b, a, amount, ""), zero_of(a));
  ts_v most = ts_emit_const_int(e, type, ts_dtype_bits(type) - 1);
  return LLVMBuildAShr(e->b, a, choose(e, within, amount, most), "");
}

/* The instruction of x86, which gives b where one of them is NaN or both are zeros. */
static ts_v extreme_or_second(ts_emit *e, bool largest, ts_v a, ts_v b) {
  return choose(e, LLVMBuildFCmp(e->b, largest ? LLVMRealOGT : LLVMRealOLT, a, b, ""), a, b);
}

/* Both orders give the same bits of numbers. Of zeros they give both, of which -0 has one bit more; of a number and a
 * NaN as well, and bits of a NaN with more bits set are a NaN. Of bf16 the lower bits stay 0, as rounded_arithmetic()
 * needs them. */
static ts_v extreme_of_both(ts_emit *e, ts_dtype of, bool largest, ts_v a, ts_v b) {
  LLVMTypeRef type = LLVMTypeOf(a);
  const bool wide = LLVMGetTypeKind(LLVMGetElementType(type)) == LLVMDoubleTypeKind;
  LLVMTypeRef bits = LLVMVectorType(LLVMIntTypeInContext(e->context, wide ? 64 : 32), LLVMGetVectorSize(type));
  ts_v x = LLVMBuildBitCast(e->b, extreme_or_second(e, largest, a, b), bits, "");
  ts_v y = LLVMBuildBitCast(e->b, extreme_or_second(e, largest, b, a), bits, "");
  ts_v both = largest ? LLVMBuildAnd(e->b, x, y, "") : LLVMBuildOr(e->b, x, y, "");
  if (largest) {
    ts_v none = LLVMBuildSExt(e->b, LLVMBuildFCmp(e->b, LLVMRealUNO, a, b, ""), bits, "");
    if (of == TS_BF16) none = LLVMBuildAnd(e->b, none, u32(e, 0xFFFF0000), "");
    both = LLVMBuildOr(e->b, both, none, "");
  }
  return LLVMBuildBitCast(e->b, both, type, "");
}

/* LLVM expands llvm.maximum on x86 to code that takes several times as long to run and to compile, unless one operand
 * is known. */
static ts_v float_extreme(ts_emit *e, ts_dtype type, bool largest, ts_v a, ts_v b) {
  bool known = LLVMIsConstant(a) || LLVMIsConstant(b);
  if (known || e->target->arch != TS_ARCH_X86_64) return call2(e, largest ? "llvm.maximum" : "llvm.minimum", a, b);
  if (e->target->isa != TS_ISA_AVX512) return extreme_of_both(e, type, largest, a, b);
  ts_vm m = ts_vm_begin(e, type == TS_F64, LLVMGetVectorSize(LLVMTypeOf(a)));
  return ts_vm_avx512_extreme(&m, largest, a, b, NULL);
}

/* All except pow and atan2, which are vector math. */
static ts_v float_binary(ts_emit *e, ts_opcode op, ts_dtype type, ts_v a, ts_v b) {
  switch ((ts_ops_BINARY)op) {
  case TS_OP_ADD: return LLVMBuildFAdd(e->b, a, b, "");
  case TS_OP_SUBTRACT: return LLVMBuildFSub(e->b, a, b, "");
  case TS_OP_MULTIPLY: return LLVMBuildFMul(e->b, a, b, "");
  case TS_OP_REMAINDER: return float_remainder(e, type, a, b);
  case TS_OP_MIN: return float_extreme(e, type, false, a, b);
  case TS_OP_MAX: return float_extreme(e, type, true, a, b);
  case TS_OP_POW: break;
  }
  switch ((ts_ops_BINARY_FLOAT)op) {
  case TS_OP_DIVIDE: return LLVMBuildFDiv(e->b, a, b, "");
  case TS_OP_ATAN2: break;
  }
  return NULL;
}

static ts_v integer_binary(ts_emit *e, ts_opcode op, ts_dtype type, ts_v a, ts_v b) {
  bool is_signed = ts_dtype_is_signed(type);
  switch ((ts_ops_BINARY)op) {
  case TS_OP_ADD: return LLVMBuildAdd(e->b, a, b, "");
  case TS_OP_SUBTRACT: return LLVMBuildSub(e->b, a, b, "");
  case TS_OP_MULTIPLY: return LLVMBuildMul(e->b, a, b, "");
  case TS_OP_REMAINDER: return integer_remainder(e, type, a, b);
  case TS_OP_POW: return integer_power(e, type, a, b);
  case TS_OP_MIN: return call2(e, is_signed ? "llvm.smin" : "llvm.umin", a, b);
  case TS_OP_MAX: return call2(e, is_signed ? "llvm.smax" : "llvm.umax", a, b);
  }
  switch ((ts_ops_BINARY_INTEGER)op) {
  case TS_OP_QUOTIENT: return integer_quotient(e, type, a, b);
  case TS_OP_AND: return LLVMBuildAnd(e->b, a, b, "");
  case TS_OP_OR: return LLVMBuildOr(e->b, a, b, "");
  case TS_OP_XOR: return LLVMBuildXor(e->b, a, b, "");
  case TS_OP_SHIFT_LEFT:
  case TS_OP_SHIFT_RIGHT: return emit_shift(e, op, type, a, b);
  }
  return NULL;
}

/* LLVM's predicates of a comparison, by the kind of type. */
typedef struct predicates {
  LLVMRealPredicate of_float;
  LLVMIntPredicate of_signed, of_unsigned;
} predicates;

static ts_v compare(ts_emit *e, ts_dtype type, predicates p, ts_v a, ts_v b) {
  if (ts_dtype_is_float(type)) return LLVMBuildFCmp(e->b, p.of_float, a, b, "");
  return LLVMBuildICmp(e->b, ts_dtype_is_signed(type) ? p.of_signed : p.of_unsigned, a, b, "");
}

static ts_v compare_mask(ts_emit *e, ts_opcode op, ts_dtype type, ts_v a, ts_v b) {
  switch ((ts_ops_COMPARE)op) {
  case TS_OP_EQUAL: return compare(e, type, (predicates){LLVMRealOEQ, LLVMIntEQ, LLVMIntEQ}, a, b);
  case TS_OP_NOT_EQUAL: return compare(e, type, (predicates){LLVMRealUNE, LLVMIntNE, LLVMIntNE}, a, b);
  case TS_OP_GREATER: return compare(e, type, (predicates){LLVMRealOGT, LLVMIntSGT, LLVMIntUGT}, a, b);
  case TS_OP_LESS: return compare(e, type, (predicates){LLVMRealOLT, LLVMIntSLT, LLVMIntULT}, a, b);
  case TS_OP_GREATER_EQUAL: return compare(e, type, (predicates){LLVMRealOGE, LLVMIntSGE, LLVMIntUGE}, a, b);
  case TS_OP_LESS_EQUAL: return compare(e, type, (predicates){LLVMRealOLE, LLVMIntSLE, LLVMIntULE}, a, b);
  case TS_OP_LOGICAL_AND: return LLVMBuildAnd(e->b, ts_emit_mask(e, type, a), ts_emit_mask(e, type, b), "");
  case TS_OP_LOGICAL_OR: return LLVMBuildOr(e->b, ts_emit_mask(e, type, a), ts_emit_mask(e, type, b), "");
  case TS_OP_LOGICAL_XOR: return LLVMBuildXor(e->b, ts_emit_mask(e, type, a), ts_emit_mask(e, type, b), "");
  }
  return NULL;
}

static ts_v emit_compare(ts_emit *e, ts_opcode op, ts_dtype type, ts_v a, ts_v b) {
  ts_v mask = compare_mask(e, op, type, a, b);
  return mask ? ts_emit_truth(e, mask) : NULL;
}

/* ---- complex numbers: an integer for each in registers, whose bits are the interleaved parts ---- */

/* The lanes of x and, from their number on, of y. */
static ts_v shuffle(ts_emit *e, ts_v x, ts_v y, const unsigned *lanes, unsigned count) {
  LLVMTypeRef i32 = LLVMInt32TypeInContext(e->context);
  LLVMValueRef numbers[128];
  for (unsigned i = 0; i < count; i++) numbers[i] = LLVMConstInt(i32, lanes[i], 0);
  return LLVMBuildShuffleVector(e->b, x, y, LLVMConstVector(numbers, count), "");
}

static ts_v take_part(ts_emit *e, ts_dtype type, bool imag, ts_v x) {
  unsigned lanes[64], count = (unsigned)e->lanes;
  LLVMTypeRef parts = LLVMVectorType(ts_emit_element_type(e, ts_dtype_part(type)), 2 * count);
  for (unsigned i = 0; i < count; i++) lanes[i] = 2 * i + imag;
  x = LLVMBuildBitCast(e->b, x, parts, "");
  return shuffle(e, x, LLVMGetPoison(parts), lanes, count);
}

static ts_v join_parts(ts_emit *e, ts_dtype part, ts_v re, ts_v im) {
  unsigned lanes[128], count = (unsigned)e->lanes;
  for (unsigned i = 0; i < 2 * count; i++) lanes[i] = i / 2 + (i % 2 ? count : 0);
  return LLVMBuildBitCast(e->b, shuffle(e, re, im, lanes, 2 * count), ts_emit_vector_type(e, ts_dtype_to_complex(part)),
                          "");
}

static ts_v emit_complex(ts_emit *e, ts_opcode op, ts_dtype type, const ts_v *operands) {
  switch ((ts_ops_COMPLEX)op) {
  case TS_OP_REAL: return take_part(e, type, false, operands[0]);
  case TS_OP_IMAG: return take_part(e, type, true, operands[0]);
  case TS_OP_COMPLEX: return join_parts(e, type, operands[0], operands[1]);
  }
  return NULL;
}

/* ---- the entry ---- */

static ts_status emit_math(ts_emit *e, ts_opcode op, ts_dtype type, const ts_v *operands, ts_v *out) {
  ts_v result, second = op == TS_OP_POW || op == TS_OP_ATAN2 ? operands[1] : NULL;
  if (op == TS_OP_SQRT) {
    *out = rounded_arithmetic(e, type, call1(e, "llvm.sqrt", operands[0]));
    return TS_SUCCESS;
  }
  TS_TRY(ts_emit_math(e, op, type == TS_F64 ? TS_F64 : TS_F32, operands[0], second, &result));
  *out = rounded(e, type, result);
  return TS_SUCCESS;
}

static ts_status emit_binary(ts_emit *e, ts_opcode op, ts_dtype type, const ts_v *operands, ts_v *out) {
  if (!ts_dtype_is_float(type)) {
    *out = integer_binary(e, op, type, operands[0], operands[1]);
    return TS_SUCCESS;
  }
  if (op == TS_OP_POW || op == TS_OP_ATAN2) return emit_math(e, op, type, operands, out);
  *out = float_binary(e, op, type, operands[0], operands[1]);
  bool exact = op == TS_OP_MIN || op == TS_OP_MAX || op == TS_OP_REMAINDER;
  if (*out && !exact) *out = rounded_arithmetic(e, type, *out);
  return TS_SUCCESS;
}

static ts_v emit_clamp(ts_emit *e, ts_dtype type, const ts_v *operands) {
  bool is_float = ts_dtype_is_float(type);
  ts_v low = is_float ? float_binary(e, TS_OP_MAX, type, operands[0], operands[1])
                      : integer_binary(e, TS_OP_MAX, type, operands[0], operands[1]);
  return is_float ? float_binary(e, TS_OP_MIN, type, low, operands[2])
                  : integer_binary(e, TS_OP_MIN, type, low, operands[2]);
}

static ts_status emit_class(ts_emit *e, ts_opcode op, ts_dtype type, const ts_v *operands, ts_v *out) {
  switch (ts_op_get_class(op)) {
  case TS_CLASS_UNARY_FLOAT: return emit_math(e, op, type, operands, out);
  case TS_CLASS_UNARY:
  case TS_CLASS_UNARY_INTEGER: *out = emit_unary(e, op, type, operands[0]); return TS_SUCCESS;
  case TS_CLASS_PREDICATE: *out = emit_predicate(e, op, type, operands[0]); return TS_SUCCESS;
  case TS_CLASS_COMPLEX: *out = emit_complex(e, op, type, operands); return TS_SUCCESS;
  case TS_CLASS_BINARY:
  case TS_CLASS_BINARY_FLOAT:
  case TS_CLASS_BINARY_INTEGER: return emit_binary(e, op, type, operands, out);
  case TS_CLASS_COMPARE: *out = emit_compare(e, op, type, operands[0], operands[1]); return TS_SUCCESS;
  case TS_CLASS_SELECT:
    *out = ts_emit_mask(e, TS_U8, operands[0]);
    *out = choose(e, type == TS_C128 ? ts_emit_wide_mask(e, *out) : *out, operands[1], operands[2]);
    return TS_SUCCESS;
  case TS_CLASS_CLAMP: *out = emit_clamp(e, type, operands); return TS_SUCCESS;
  case TS_CLASS_CONVERT: /* emit_convert.c */
  case TS_CLASS_SOURCE:
  case TS_CLASS_SHAPE:
  case TS_CLASS_INDEXED:
  case TS_CLASS_REDUCE:
  case TS_CLASS_ARG_REDUCE:
  case TS_CLASS_SCAN:
  case TS_CLASS_SORT:
  case TS_CLASS_WINDOW:
  case TS_CLASS_DOT:
  case TS_CLASS_LINALG:
  case TS_CLASS_COLLECTIVE:
  case TS_CLASS_FFT:
  case TS_CLASS_CONTROL: break;
  }
  return TS_SUCCESS;
}

ts_status ts_emit_op(ts_emit *e, ts_opcode op, ts_dtype type, const ts_v *operands, ts_v *out) {
  *out = NULL;
  bool moves = ts_op_get_class(op) == TS_CLASS_COMPLEX || op == TS_OP_SELECT;
  if (ts_dtype_is_complex(type) && !moves)
    return ts_error(TS_UNIMPLEMENTED, "no code is emitted for %s of complex numbers", ts_op_name(op));
  TS_TRY(emit_class(e, op, type, operands, out));
  return *out ? TS_SUCCESS : ts_error(TS_UNIMPLEMENTED, "no code is emitted for %s", ts_op_name(op));
}
