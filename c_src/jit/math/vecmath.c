/* Vector math: the choice of a function for each op. Every function works lane by lane, so a value's result does not
 * depend on its position in a vector. */
#include "jit/math/vecmath.h"

static ts_v emit_unary(ts_vm *m, ts_opcode op, ts_v x) {
  switch ((ts_ops_UNARY_FLOAT)op) {
  case TS_OP_EXP: return ts_vm_exp(m, x);
  case TS_OP_EXPM1: return ts_vm_expm1(m, x);
  case TS_OP_LOG: return ts_vm_log(m, x);
  case TS_OP_LOG1P: return ts_vm_log1p(m, x);
  case TS_OP_SIGMOID: return ts_vm_sigmoid(m, x);
  case TS_OP_COS: return ts_vm_cos(m, x);
  case TS_OP_SIN: return ts_vm_sin(m, x);
  case TS_OP_TAN: return ts_vm_tan(m, x);
  case TS_OP_COSH: return ts_vm_cosh(m, x);
  case TS_OP_SINH: return ts_vm_sinh(m, x);
  case TS_OP_TANH: return ts_vm_tanh(m, x);
  case TS_OP_ACOS: return ts_vm_acos(m, x);
  case TS_OP_ASIN: return ts_vm_asin(m, x);
  case TS_OP_ATAN: return ts_vm_atan(m, x);
  case TS_OP_ACOSH: return ts_vm_acosh(m, x);
  case TS_OP_ASINH: return ts_vm_asinh(m, x);
  case TS_OP_ATANH: return ts_vm_atanh(m, x);
  case TS_OP_SQRT: return l_sqrt(m, x);
  case TS_OP_RSQRT: return ts_vm_rsqrt(m, x);
  case TS_OP_CBRT: return ts_vm_cbrt(m, x);
  case TS_OP_ERF: return ts_vm_erf(m, x);
  case TS_OP_ERFC: return ts_vm_erfc(m, x);
  case TS_OP_ERF_INV: return ts_vm_erf_inv(m, x);
  }
  return NULL;
}

ts_status ts_emit_math(ts_emit *e, ts_opcode op, ts_dtype type, ts_v x, ts_v y, ts_v *out) {
  if (type != TS_F32 && type != TS_F64) {
    return ts_error(TS_INTERNAL, "vector math on %s: only f32 and f64", ts_dtype_name(type));
  }
  LLVMTypeRef vector = LLVMTypeOf(x);
  unsigned lanes = LLVMGetTypeKind(vector) == LLVMVectorTypeKind ? LLVMGetVectorSize(vector) : 0;
  if (lanes == 0 || lanes > TS_VM_MAX_LANES || lanes % (unsigned)e->target->lanes) {
    return ts_error(TS_INTERNAL, "vector math on %u lanes: not a multiple of %d", lanes, e->target->lanes);
  }
  ts_vm m = ts_vm_begin(e, type == TS_F64, lanes);
  if (op == TS_OP_POW)
    *out = ts_vm_pow(&m, x, y);
  else if (op == TS_OP_ATAN2)
    *out = ts_vm_atan2(&m, x, y);
  else
    *out = emit_unary(&m, op, x);
  if (!*out) return ts_error(TS_UNIMPLEMENTED, "no vector math for %s", ts_op_name(op));
  return TS_SUCCESS;
}
