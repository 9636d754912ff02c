/* Elementwise ops on register-form vectors. Meanings: ir/op.def and
 * kernel/ref_scalar.c. No fast-math flags anywhere: each op rounds to its own
 * type. Truth values travel as u8 vectors that are zero-extended masks; where
 * a mask is wanted the extension is looked through again. */
#include "jit/emit_op.h"
#include "jit/vecmath.h"

#include <math.h>

static bool is_half(ts_dtype type) { return type == TS_F16 || type == TS_BF16; }

static ts_v call1(ts_emit *e, const char *name, ts_v x) { return ts_emit_intrinsic(e, name, NULL, &x, 1); }

static ts_v call2(ts_emit *e, const char *name, ts_v x, ts_v y) {
  return ts_emit_intrinsic(e, name, NULL, (ts_v[]){x, y}, 2);
}

static ts_v zero_of(ts_v x) { return LLVMConstNull(LLVMTypeOf(x)); }
static ts_v ones_of(ts_v x) { return LLVMConstAllOnes(LLVMTypeOf(x)); }

static ts_v choose(ts_emit *e, ts_v mask, ts_v a, ts_v b) { return LLVMBuildSelect(e->b, mask, a, b, ""); }

/* ---- truth ---- */

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

/* In place: the upper 16 bits of the f32, to nearest even. */
static ts_v round_bf16(ts_emit *e, ts_v x) {
  ts_v bits = bits_of(e, x), upper = u32(e, 0xFFFF0000);
  ts_v odd = LLVMBuildAnd(e->b, LLVMBuildLShr(e->b, bits, u32(e, 16), ""), u32(e, 1), "");
  ts_v near = LLVMBuildAdd(e->b, bits, LLVMBuildAdd(e->b, odd, u32(e, 0x7FFF), ""), "");
  ts_v quiet = LLVMBuildOr(e->b, bits, u32(e, 0x400000), "");
  ts_v nan = LLVMBuildFCmp(e->b, LLVMRealUNO, x, x, "");
  return float_of(e, LLVMBuildAnd(e->b, choose(e, nan, quiet, near), upper, ""));
}

ts_v ts_emit_round_half(ts_emit *e, ts_dtype type, ts_v value) {
  if (type == TS_BF16) return round_bf16(e, value);
  return ts_emit_half_value(e, type, ts_emit_half_bits(e, type, value));
}

static ts_v rounded(ts_emit *e, ts_dtype type, ts_v value) {
  return is_half(type) ? ts_emit_round_half(e, type, value) : value;
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

static ts_v emit_unary(ts_emit *e, ts_opcode op, ts_dtype type, ts_v x) {
  bool is_float = ts_dtype_is_float(type);
  switch (op) {
  case TS_OP_ABS:
    if (is_float) return call1(e, "llvm.fabs", x);
    return ts_dtype_is_signed(type) ? with_flag(e, "llvm.abs", x) : x;
  case TS_OP_NEGATE: return is_float ? LLVMBuildFNeg(e->b, x, "") : LLVMBuildNeg(e->b, x, "");
  case TS_OP_SIGN: return is_float ? float_sign(e, type, x) : integer_sign(e, type, x);
  case TS_OP_CEIL: return is_float ? call1(e, "llvm.ceil", x) : x;
  case TS_OP_FLOOR: return is_float ? call1(e, "llvm.floor", x) : x;
  case TS_OP_ROUND: return is_float ? call1(e, "llvm.round", x) : x;
  case TS_OP_NOT: return LLVMBuildNot(e->b, x, "");
  case TS_OP_CLZ: return with_flag(e, "llvm.ctlz", x);
  default: return call1(e, "llvm.ctpop", x);
  }
}

static ts_v emit_predicate(ts_emit *e, ts_opcode op, ts_dtype type, ts_v x) {
  if (!ts_dtype_is_float(type)) return LLVMConstNull(ts_emit_vector_type(e, TS_U8));
  if (op == TS_OP_IS_NAN) return ts_emit_truth(e, LLVMBuildFCmp(e->b, LLVMRealUNO, x, x, ""));
  ts_v infinity = ts_emit_const_float(e, type, INFINITY);
  return ts_emit_truth(e, LLVMBuildFCmp(e->b, LLVMRealOEQ, call1(e, "llvm.fabs", x), infinity, ""));
}

/* ---- integer quotient and remainder ---- */

/* Integers of at most 16 bits divide exactly in f32, those of 32 bits in f64:
 * two quotients that differ are further apart than the rounding. */
static ts_v divide_as_float(ts_emit *e, ts_dtype type, ts_v a, ts_v b) {
  bool is_signed = ts_dtype_is_signed(type), wide = ts_dtype_bits(type) == 32;
  LLVMTypeRef real = ts_emit_vector_type(e, wide ? TS_F64 : TS_F32);
  LLVMTypeRef whole = ts_emit_vector_type(e, TS_S32);
  LLVMOpcode to_real = is_signed ? LLVMSIToFP : LLVMUIToFP;
  ts_v x = LLVMBuildCast(e->b, to_real, a, real, ""), y = LLVMBuildCast(e->b, to_real, b, real, "");
  ts_v q = LLVMBuildFDiv(e->b, x, y, "");
  bool fits = is_signed || !wide;
  ts_v result = LLVMBuildCast(e->b, fits ? LLVMFPToSI : LLVMFPToUI, q, whole, "");
  return wide ? result : LLVMBuildTrunc(e->b, result, LLVMTypeOf(a), "");
}

/* a / b where b is not 0; what b = 0 gives is undefined but harmless. */
static ts_v quotient(ts_emit *e, ts_dtype type, ts_v a, ts_v b, ts_v zero) {
  bool is_signed = ts_dtype_is_signed(type);
  ts_v minus = is_signed ? LLVMBuildICmp(e->b, LLVMIntEQ, b, ones_of(b), "") : NULL;
  ts_v unsafe = minus ? LLVMBuildOr(e->b, zero, minus, "") : zero;
  ts_v divisor = choose(e, unsafe, ts_emit_const_int(e, type, 1), b), q;
  if (ts_dtype_bits(type) < 64)
    q = divide_as_float(e, type, a, divisor);
  else
    q = is_signed ? LLVMBuildSDiv(e->b, a, divisor, "") : LLVMBuildUDiv(e->b, a, divisor, "");
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

/* A loop over whole vectors with `count` carried values, for ops whose lanes need unlike many steps. */
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

/* Goes round again while any lane of `mask` is set. */
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

/* The leading bits of a quotient too large to be exact, and so many units of the last of them less. */
static ts_v leading_bits(ts_emit *e, ts_v q, int cleared, uint64_t less) {
  ts_v bits = LLVMBuildBitCast(e->b, q, ts_emit_vector_type(e, TS_U64), "");
  bits = LLVMBuildAnd(e->b, bits, ts_emit_const_bits(e, TS_U64, ~UINT64_C(0) << cleared), "");
  bits = LLVMBuildSub(e->b, bits, ts_emit_const_bits(e, TS_U64, less << cleared), "");
  return LLVMBuildBitCast(e->b, bits, ts_emit_vector_type(e, TS_F64), "");
}

/* r - n y. `from_f32`: both have 24 bits, and n no more, so that their product is exact. */
static ts_v take_off(ts_emit *e, ts_v r, ts_v n, ts_v y, bool from_f32) {
  if (from_f32) return LLVMBuildFSub(e->b, r, LLVMBuildFMul(e->b, n, y, ""), "");
  return ts_emit_intrinsic(e, "llvm.fma", NULL, (ts_v[]){LLVMBuildFNeg(e->b, n, ""), y, r}, 3);
}

/* One step of |a| mod |b|: takes a multiple n of y off r such that the rest is exact, and no less than 0. With `u` the
 * unit of n's last bit and 2^k <= y the rest is a multiple of u 2^(k - 52) below u y < u 2^(k + 1): 53 bits. The
 * quotient may have been rounded up: then the next lower n is the one. */
static ts_v remainder_step(ts_emit *e, ts_v r, ts_v y, bool from_f32) {
  ts_v exact_below = ts_emit_const_float(e, TS_F64, from_f32 ? 0x1p24 : 0x1p50);
  int cleared = from_f32 ? 29 : 4;
  ts_v q = LLVMBuildFDiv(e->b, r, y, "");
  /* A quotient past the range, which may be 2^2098: first modulo a large multiple of y. */
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

/* What LLVM makes of llvm.maximum is twice as long to run and to compile, unless it knows one operand. */
static ts_v float_extreme(ts_emit *e, ts_dtype type, bool largest, ts_v a, ts_v b) {
  bool known = LLVMIsConstant(a) || LLVMIsConstant(b);
  if (known || e->target->isa != TS_ISA_AVX512) return call2(e, largest ? "llvm.maximum" : "llvm.minimum", a, b);
  ts_vm m = ts_vm_begin(e, type == TS_F64, LLVMGetVectorSize(LLVMTypeOf(a)));
  return ts_vm_avx512_extreme(&m, largest, a, b, NULL);
}

static ts_v float_binary(ts_emit *e, ts_opcode op, ts_dtype type, ts_v a, ts_v b) {
  switch (op) {
  case TS_OP_ADD: return LLVMBuildFAdd(e->b, a, b, "");
  case TS_OP_SUBTRACT: return LLVMBuildFSub(e->b, a, b, "");
  case TS_OP_MULTIPLY: return LLVMBuildFMul(e->b, a, b, "");
  case TS_OP_DIVIDE: return LLVMBuildFDiv(e->b, a, b, "");
  case TS_OP_REMAINDER: return float_remainder(e, type, a, b);
  case TS_OP_MIN: return float_extreme(e, type, false, a, b);
  default: return float_extreme(e, type, true, a, b);
  }
}

static ts_v integer_binary(ts_emit *e, ts_opcode op, ts_dtype type, ts_v a, ts_v b) {
  bool is_signed = ts_dtype_is_signed(type);
  switch (op) {
  case TS_OP_ADD: return LLVMBuildAdd(e->b, a, b, "");
  case TS_OP_SUBTRACT: return LLVMBuildSub(e->b, a, b, "");
  case TS_OP_MULTIPLY: return LLVMBuildMul(e->b, a, b, "");
  case TS_OP_QUOTIENT: return integer_quotient(e, type, a, b);
  case TS_OP_REMAINDER: return integer_remainder(e, type, a, b);
  case TS_OP_POW: return integer_power(e, type, a, b);
  case TS_OP_MIN: return call2(e, is_signed ? "llvm.smin" : "llvm.umin", a, b);
  case TS_OP_MAX: return call2(e, is_signed ? "llvm.smax" : "llvm.umax", a, b);
  case TS_OP_AND: return LLVMBuildAnd(e->b, a, b, "");
  case TS_OP_OR: return LLVMBuildOr(e->b, a, b, "");
  case TS_OP_XOR: return LLVMBuildXor(e->b, a, b, "");
  default: return emit_shift(e, op, type, a, b);
  }
}

static LLVMRealPredicate real_predicate(ts_opcode op) {
  switch (op) {
  case TS_OP_EQUAL: return LLVMRealOEQ;
  case TS_OP_NOT_EQUAL: return LLVMRealUNE;
  case TS_OP_GREATER: return LLVMRealOGT;
  case TS_OP_LESS: return LLVMRealOLT;
  case TS_OP_GREATER_EQUAL: return LLVMRealOGE;
  default: return LLVMRealOLE;
  }
}

static LLVMIntPredicate integer_predicate(ts_opcode op, bool is_signed) {
  switch (op) {
  case TS_OP_EQUAL: return LLVMIntEQ;
  case TS_OP_NOT_EQUAL: return LLVMIntNE;
  case TS_OP_GREATER: return is_signed ? LLVMIntSGT : LLVMIntUGT;
  case TS_OP_LESS: return is_signed ? LLVMIntSLT : LLVMIntULT;
  case TS_OP_GREATER_EQUAL: return is_signed ? LLVMIntSGE : LLVMIntUGE;
  default: return is_signed ? LLVMIntSLE : LLVMIntULE;
  }
}

static ts_v emit_compare(ts_emit *e, ts_opcode op, ts_dtype type, ts_v a, ts_v b) {
  ts_v mask;
  switch (op) {
  case TS_OP_LOGICAL_AND: mask = LLVMBuildAnd(e->b, ts_emit_mask(e, type, a), ts_emit_mask(e, type, b), ""); break;
  case TS_OP_LOGICAL_OR: mask = LLVMBuildOr(e->b, ts_emit_mask(e, type, a), ts_emit_mask(e, type, b), ""); break;
  case TS_OP_LOGICAL_XOR: mask = LLVMBuildXor(e->b, ts_emit_mask(e, type, a), ts_emit_mask(e, type, b), ""); break;
  default:
    mask = ts_dtype_is_float(type) ? LLVMBuildFCmp(e->b, real_predicate(op), a, b, "")
                                   : LLVMBuildICmp(e->b, integer_predicate(op, ts_dtype_is_signed(type)), a, b, "");
  }
  return ts_emit_truth(e, mask);
}

/* ---- the entry ---- */

static ts_status emit_math(ts_emit *e, ts_opcode op, ts_dtype type, const ts_v *operands, ts_v *out) {
  ts_v result, second = op == TS_OP_POW || op == TS_OP_ATAN2 ? operands[1] : NULL;
  if (op == TS_OP_SQRT)
    result = call1(e, "llvm.sqrt", operands[0]);
  else
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
  ts_v result = float_binary(e, op, type, operands[0], operands[1]);
  bool exact = op == TS_OP_MIN || op == TS_OP_MAX || op == TS_OP_REMAINDER;
  *out = exact ? result : rounded(e, type, result);
  return TS_SUCCESS;
}

static ts_v emit_clamp(ts_emit *e, ts_dtype type, const ts_v *operands) {
  bool is_float = ts_dtype_is_float(type);
  ts_v low = is_float ? float_binary(e, TS_OP_MAX, type, operands[0], operands[1])
                      : integer_binary(e, TS_OP_MAX, type, operands[0], operands[1]);
  return is_float ? float_binary(e, TS_OP_MIN, type, low, operands[2])
                  : integer_binary(e, TS_OP_MIN, type, low, operands[2]);
}

ts_status ts_emit_op(ts_emit *e, ts_opcode op, ts_dtype type, const ts_v *operands, ts_v *out) {
  switch (ts_op_get_class(op)) {
  case TS_CLASS_UNARY_FLOAT: return emit_math(e, op, type, operands, out);
  case TS_CLASS_UNARY:
  case TS_CLASS_UNARY_INTEGER: *out = emit_unary(e, op, type, operands[0]); return TS_SUCCESS;
  case TS_CLASS_PREDICATE: *out = emit_predicate(e, op, type, operands[0]); return TS_SUCCESS;
  case TS_CLASS_BINARY:
  case TS_CLASS_BINARY_FLOAT:
  case TS_CLASS_BINARY_INTEGER: return emit_binary(e, op, type, operands, out);
  case TS_CLASS_COMPARE: *out = emit_compare(e, op, type, operands[0], operands[1]); return TS_SUCCESS;
  case TS_CLASS_SELECT:
    *out = choose(e, ts_emit_mask(e, TS_U8, operands[0]), operands[1], operands[2]);
    return TS_SUCCESS;
  case TS_CLASS_CLAMP: *out = emit_clamp(e, type, operands); return TS_SUCCESS;
  default: return ts_error(TS_INTERNAL, "%s is not an elementwise op", ts_op_name(op));
  }
}
