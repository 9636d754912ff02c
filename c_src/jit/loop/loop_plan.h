/* Analysis of a kernel before emission, without LLVM: the loop level of each node, the passes of a ROW kernel over the
 * row, and the nodes saved between passes. Pure, thread-safe. */
#ifndef TS_JIT_LOOP_PLAN_H
#define TS_JIT_LOOP_PLAN_H

#include "base/arena.h"
#include "jit/kernel.h"

typedef enum ts_level {
  TS_LEVEL_KERNEL, /* one value for each launch */
  TS_LEVEL_ROW,    /* one value for each row (COL: row of the reduced dim) */
  TS_LEVEL_POINT
} ts_level;

/* Arrays have one entry for each node and live in the given arena. */
typedef struct ts_loop_plan {
  uint8_t *level;
  bool *needed;    /* some output depends on it */
  int32_t *stage;  /* length of the chain of reductions before it: it is available after this pass */
  int32_t *weight; /* cost of the node alone, in simple vector operations */
  int32_t total_weight;
  /* ROW */
  int32_t passes;       /* over the row */
  int32_t *output_pass; /* one entry for each output: the pass that stores it (row-level: after this pass) */
  int32_t *first;       /* the first pass that uses the node */
  int64_t *saved;       /* -1, or the offset of the node's row in the workspace, in bytes for each element */
  int64_t saved_bytes;  /* for each element */
} ts_loop_plan;

ts_status ts_loop_plan_make(const ts_kernel_desc *desc, ts_arena *arena, ts_loop_plan *out);
/* ROW: marks the nodes that a pass computes; those saved earlier are leaves. */
void ts_loop_plan_pass(const ts_kernel_desc *desc, const ts_loop_plan *plan, int32_t pass, bool *wanted);

/* Sums and products of floats are the only reductions whose bits depend on the tree. */
static inline bool ts_reduce_is_exact(ts_opcode op, ts_dtype type) {
  return !ts_dtype_is_float(type) || (op != TS_OP_REDUCE_SUM && op != TS_OP_REDUCE_PRODUCT);
}

#endif
