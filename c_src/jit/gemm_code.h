/* The shared part of the emitters of product kernels: small pieces of IR, loops and guards. The state of an emission is
 * its gemm_emit. */
#ifndef TS_JIT_GEMM_CODE_H
#define TS_JIT_GEMM_CODE_H

#include "jit/emit/emit.h"
#include "jit/emit/gemm_emit.h"

#include <string.h>

typedef struct gemm_emit {
  ts_emit *e;
  LLVMBuilderRef b;
  const ts_gemm_geometry *g;
  LLVMTypeRef i8, i64, element, vector;
  LLVMValueRef args;
  ts_dtype x; /* type of the matrix where it is narrower than `element` */
  int x_size; /* size of its elements in memory */
} gemm_emit;

static inline ts_v i64_const(gemm_emit *m, int64_t value) { return LLVMConstInt(m->i64, (uint64_t)value, true); }

static inline LLVMBasicBlockRef new_block(gemm_emit *m, const char *name) {
  return LLVMAppendBasicBlockInContext(m->e->context, m->e->function, name);
}

static inline ts_v add(gemm_emit *m, ts_v a, ts_v b) { return LLVMBuildAdd(m->b, a, b, ""); }
static inline ts_v mul(gemm_emit *m, ts_v a, ts_v b) { return LLVMBuildMul(m->b, a, b, ""); }

static inline ts_v offset(gemm_emit *m, ts_v address, ts_v bytes) {
  return LLVMBuildGEP2(m->b, m->i8, address, &bytes, 1, "");
}

static inline ts_v offset_const(gemm_emit *m, ts_v address, int64_t bytes) {
  return bytes ? offset(m, address, i64_const(m, bytes)) : address;
}

static inline ts_v arg(gemm_emit *m, int index, const char *name) {
  return LLVMBuildLoad2(m->b, m->i64, offset_const(m, m->args, 8 * index), name);
}

static inline ts_v arg_pointer(gemm_emit *m, int index, const char *name) {
  return LLVMBuildIntToPtr(m->b, arg(m, index, ""), LLVMPointerTypeInContext(m->e->context, 0), name);
}

static inline ts_v load(gemm_emit *m, LLVMTypeRef type, ts_v address) {
  ts_v value = LLVMBuildLoad2(m->b, type, address, "");
  LLVMSetAlignment(value, (unsigned)m->g->element_size);
  return value;
}

static inline void store(gemm_emit *m, ts_v value, ts_v address) {
  LLVMSetAlignment(LLVMBuildStore(m->b, value, address), (unsigned)m->g->element_size);
}

/* `scalar` in all lanes of `type`, or unchanged where `type` is a scalar. */
static inline ts_v splat(gemm_emit *m, LLVMTypeRef type, ts_v scalar) {
  if (LLVMGetTypeKind(type) != LLVMVectorTypeKind) return scalar;
  LLVMTypeRef i32 = LLVMInt32TypeInContext(m->e->context);
  ts_v one = LLVMBuildInsertElement(m->b, LLVMGetPoison(type), scalar, LLVMConstNull(i32), "");
  return LLVMBuildShuffleVector(m->b, one, LLVMGetPoison(type),
                                LLVMConstNull(LLVMVectorType(i32, LLVMGetVectorSize(type))), "");
}

#ifndef __x86_64__
/* One half of each element, as an integer of 32 bits. */
static inline ts_v half_of_pair(gemm_emit *m, ts_v pairs, bool high) {
  ts_v sixteen = splat(m, LLVMTypeOf(pairs), LLVMConstInt(m->element, 16, false));
  return LLVMBuildAShr(m->b, high ? pairs : LLVMBuildShl(m->b, pairs, sixteen, ""), sixteen, "");
}
#endif

/* The sums of the products of both halves. */
static inline ts_v multiply_pairs(gemm_emit *m, ts_v a, ts_v b) {
#ifdef __x86_64__
  const char *name = m->g->lanes == 16  ? "llvm.x86.avx512.pmaddw.d.512"
                     : m->g->lanes == 8 ? "llvm.x86.avx2.pmadd.wd"
                                        : "llvm.x86.sse2.pmadd.wd";
  LLVMTypeRef halves = LLVMVectorType(LLVMInt16TypeInContext(m->e->context), 2 * (unsigned)m->g->lanes);
  ts_v args[] = {LLVMBuildBitCast(m->b, a, halves, ""), LLVMBuildBitCast(m->b, b, halves, "")};
  unsigned id = LLVMLookupIntrinsicID(name, strlen(name));
  LLVMTypeRef type = LLVMIntrinsicGetType(m->e->context, id, NULL, 0);
  return LLVMBuildCall2(m->b, type, LLVMGetIntrinsicDeclaration(m->e->module, id, NULL, 0), args, 2, "");
#else
  ts_v low = mul(m, half_of_pair(m, a, false), half_of_pair(m, b, false));
  return add(m, low, mul(m, half_of_pair(m, a, true), half_of_pair(m, b, true)));
#endif
}

static inline ts_v multiply_add(gemm_emit *m, ts_v a, ts_v b, ts_v sum) {
  if (m->g->compute == TS_GEMM_PAIRS) return add(m, multiply_pairs(m, a, b), sum);
  if (m->g->compute >= TS_GEMM_I32) return add(m, mul(m, a, b), sum);
  if (!m->g->fma) return LLVMBuildFAdd(m->b, LLVMBuildFMul(m->b, a, b, ""), sum, "");
  ts_v args[] = {a, b, sum};
  return ts_emit_intrinsic(m->e, "llvm.fma", LLVMTypeOf(sum), args, 3);
}

static inline ts_v add_elements(gemm_emit *m, ts_v a, ts_v b) {
  return m->g->compute >= TS_GEMM_I32 ? add(m, a, b) : LLVMBuildFAdd(m->b, a, b, "");
}

/* ---- loops: `loop_begin(lo)`, body, `loop_end`; runs at least once ---- */

typedef struct loop {
  LLVMBasicBlockRef block, done;
  ts_v index;
} loop;

static inline void loop_begin(gemm_emit *m, const char *name, ts_v first, loop *l) {
  LLVMBasicBlockRef from = LLVMGetInsertBlock(m->b);
  l->block = new_block(m, name);
  l->done = new_block(m, "done");
  LLVMBuildBr(m->b, l->block);
  LLVMPositionBuilderAtEnd(m->b, l->block);
  l->index = LLVMBuildPhi(m->b, m->i64, "index");
  LLVMAddIncoming(l->index, &first, &from, 1);
}

static inline ts_v loop_phi(gemm_emit *m, LLVMBasicBlockRef from, ts_v first) {
  ts_v phi = LLVMBuildPhi(m->b, LLVMTypeOf(first), "");
  LLVMAddIncoming(phi, &first, &from, 1);
  return phi;
}

static inline void loop_next(gemm_emit *m, ts_v phi, ts_v next) {
  LLVMBasicBlockRef from = LLVMGetInsertBlock(m->b);
  LLVMAddIncoming(phi, &next, &from, 1);
}

/* Repeats while index + step < end; leaves the IR builder behind the loop. */
static inline void loop_end(gemm_emit *m, loop *l, ts_v step, ts_v end) {
  ts_v next = add(m, l->index, step);
  loop_next(m, l->index, next);
  LLVMBuildCondBr(m->b, LLVMBuildICmp(m->b, LLVMIntSLT, next, end, ""), l->block, l->done);
  LLVMPositionBuilderAtEnd(m->b, l->done);
}

/* Emits the blocks of `if (condition) {`; `guard_end` closes it. */
static inline LLVMBasicBlockRef guard_begin(gemm_emit *m, ts_v condition) {
  LLVMBasicBlockRef body = new_block(m, "body"), skip = new_block(m, "skip");
  LLVMBuildCondBr(m->b, condition, body, skip);
  LLVMPositionBuilderAtEnd(m->b, body);
  return skip;
}

static inline void guard_end(gemm_emit *m, LLVMBasicBlockRef skip) {
  LLVMBuildBr(m->b, skip);
  LLVMPositionBuilderAtEnd(m->b, skip);
}

/* ---- gemm_emit_vector.c: bodies of the kernels for few vectors; the builder stands in the function's entry ---- */

void ts_gemm_emit_axpy(gemm_emit *m);
void ts_gemm_emit_dot(gemm_emit *m);

#endif
