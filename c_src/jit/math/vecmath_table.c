/* Tables in registers: a lane takes one of 8 or 16 constants by the low bits of an integer. */
#include "jit/math/vecmath.h"

#include <string.h>

static bool splits(ts_vm *m, unsigned lanes) { return lanes > (unsigned)m->e->target->lanes / (m->wide ? 2 : 1); }

static ts_v call(ts_vm *m, const char *name, const ts_v *args, unsigned count) {
  unsigned id = LLVMLookupIntrinsicID(name, strlen(name));
  LLVMValueRef function = LLVMGetIntrinsicDeclaration(m->e->module, id, NULL, 0);
  LLVMTypeRef type = LLVMIntrinsicGetType(m->e->context, id, NULL, 0);
  return LLVMBuildCall2(m->b, type, function, (ts_v *)(uintptr_t)args, count, "");
}

/* `lanes` lanes of the table from `first` on, and again from there where it has fewer. */
static ts_v entries(ts_vm *m, const double *table, int count, int first, unsigned lanes) {
  LLVMValueRef values[TS_VM_MAX_LANES];
  for (unsigned i = 0; i < lanes; i++) values[i] = LLVMConstReal(m->scalar, table[first + (int)i % count]);
  return ts_emit_hold(m->e, LLVMConstVector(values, lanes));
}

static ts_v table_avx512(ts_vm *m, ts_v index, const double *table, int count) {
  if (!m->wide) return call(m, "llvm.x86.avx512.permvar.sf.512", (ts_v[]){entries(m, table, count, 0, 16), index}, 2);
  ts_v low = entries(m, table, count, 0, 8);
  if (count == 8) return call(m, "llvm.x86.avx512.permvar.df.512", (ts_v[]){low, index}, 2);
  return call(m, "llvm.x86.avx512.vpermi2var.pd.512", (ts_v[]){low, index, entries(m, table, count, 8, 8)}, 3);
}

/* Words of 8 entries: all of one of f32, and the low or the high ones of f64. */
static ts_v words_avx2(ts_vm *m, const double *table, bool high) {
  LLVMContextRef c = m->e->context;
  LLVMTypeRef i32 = LLVMInt32TypeInContext(c);
  LLVMValueRef values[8];
  for (int i = 0; i < 8; i++) {
    float narrow = (float)table[i];
    uint64_t bits = 0;
    memcpy(&bits, m->wide ? (const void *)&table[i] : (const void *)&narrow, m->wide ? 8 : 4);
    values[i] = LLVMConstInt(i32, (uint32_t)(high ? bits >> 32 : bits), false);
  }
  return LLVMConstBitCast(LLVMConstVector(values, 8), LLVMVectorType(LLVMFloatTypeInContext(c), 8));
}

/* One word of each entry, for both words of a lane. `upper` is set where a table of 16 entries has its last 8. */
static ts_v pick_words(ts_vm *m, ts_v words, ts_v upper, const double *table, bool high) {
  ts_v first = call(m, "llvm.x86.avx2.permps", (ts_v[]){words_avx2(m, table, high), words}, 2);
  if (!upper) return first;
  ts_v second = call(m, "llvm.x86.avx2.permps", (ts_v[]){words_avx2(m, table + 8, high), words}, 2);
  return l_select(m, upper, second, first);
}

static bool has_low_words(const double *table, int count) {
  for (int i = 0; i < count; i++) {
    uint64_t bits;
    memcpy(&bits, &table[i], sizeof bits);
    if ((uint32_t)bits) return true;
  }
  return false;
}

static ts_v table_avx2(ts_vm *m, ts_v index, const double *table, int count) {
  LLVMTypeRef i32 = LLVMInt32TypeInContext(m->e->context), ints = LLVMVectorType(i32, 8);
  LLVMValueRef even[8], blend[8];
  for (unsigned i = 0; i < 8; i++) {
    even[i] = LLVMConstInt(i32, m->wide ? i & ~1u : i, false);
    blend[i] = LLVMConstInt(i32, i % 2 ? i + 8 : i, false);
  }
  ts_v words = LLVMBuildBitCast(m->b, index, ints, ""), upper = NULL;
  words = LLVMBuildShuffleVector(m->b, words, LLVMGetPoison(ints), LLVMConstVector(even, 8), "");
  if (count == 16) {
    ts_v sign = LLVMBuildShl(m->b, words, l_splat_const(LLVMConstInt(i32, 28, false), 8), "");
    upper = LLVMBuildICmp(m->b, LLVMIntSLT, sign, LLVMConstNull(ints), "");
  }
  if (!m->wide) return pick_words(m, words, upper, table, false);
  ts_v high = pick_words(m, words, upper, table, true), low = LLVMConstNull(LLVMTypeOf(high));
  if (has_low_words(table, count)) low = pick_words(m, words, upper, table, false);
  ts_v both = LLVMBuildShuffleVector(m->b, low, high, LLVMConstVector(blend, 8), "");
  return LLVMBuildBitCast(m->b, both, LLVMVectorType(m->scalar, 4), "");
}

/* By the bits of the index, from the highest one. */
static ts_v table_by_selection(ts_vm *m, ts_v index, const double *table, int count) {
  if (count == 1) return l_const(m, table[0]);
  ts_v bit = LLVMBuildAnd(m->b, index, l_int(m, count / 2), "");
  ts_v upper = LLVMBuildICmp(m->b, LLVMIntNE, bit, l_int(m, 0), "");
  ts_v low = table_by_selection(m, index, table, count / 2);
  return l_select(m, upper, table_by_selection(m, index, table + count / 2, count / 2), low);
}

static ts_v in_parts(ts_vm *m, ts_v index, const double *table, int count) {
  unsigned lanes = LLVMGetVectorSize(LLVMTypeOf(index)), half = lanes / 2;
  if (splits(m, lanes)) {
    ts_v low = in_parts(m, l_lanes(m, index, 0, half), table, count);
    return l_join(m, low, in_parts(m, l_lanes(m, index, half, half), table, count));
  }
  if (m->e->target->isa == TS_ISA_AVX512) return table_avx512(m, index, table, count);
  return table_avx2(m, index, table, count);
}

ts_v ts_vm_table(ts_vm *m, ts_v index, const double *table, int count) {
  ts_isa isa = m->e->target->isa;
  if (isa == TS_ISA_AVX512 || isa == TS_ISA_AVX2) return in_parts(m, index, table, count);
  return table_by_selection(m, index, table, count);
}
