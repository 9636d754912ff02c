/* Groups of elements that lie one behind the other in memory, from and to one vector for each member of a group, by
 * shuffles in registers. */
#ifndef TS_JIT_EMIT_INTERLEAVE_H
#define TS_JIT_EMIT_INTERLEAVE_H

#include "jit/emit/emit.h"
#include "jit/interleave.h"

/* A basic block ends between two steps of shuffles: LLVM's search for better shuffles takes more than linear time in
 * the length of a block. The block ends with a branch on `always`, a condition that holds and that LLVM cannot prove;
 * the other target is `never`. */
typedef struct ts_emit_cut {
  ts_v always;
  LLVMBasicBlockRef never;
} ts_emit_cut;
void ts_emit_cut_block(ts_emit *e, const ts_emit_cut *cut);

/* Where the lanes of a vector come from: lane `lane[i]` of vector `vector[i]`, one of several. */
typedef struct ts_emit_origin {
  int vector[64], lane[64];
} ts_emit_origin;
ts_v ts_emit_join(ts_emit *e, const ts_v *vectors, int count, const ts_emit_origin *of);

/* `vectors` are the elements of as many groups as a vector has lanes, as they lie in memory, and become the members:
 * lane l of vector k is element k of group l. The other function is the inverse. */
void ts_emit_deinterleave(ts_emit *e, ts_v *vectors, int count, const ts_emit_cut *cut);
void ts_emit_interleave(ts_emit *e, ts_v *vectors, int count, const ts_emit_cut *cut);

#endif
