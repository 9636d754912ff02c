/* What can be known of a kernel before emission, without LLVM: at which loop
 * level each node lives, what ROW kernels do in which pass over the row, and
 * what they keep in between. Pure, thread-safe. */
#ifndef TS_JIT_LOOP_PLAN_H
#define TS_JIT_LOOP_PLAN_H

#include "base/arena.h"
#include "jit/kernel.h"

typedef enum ts_level {
  TS_LEVEL_KERNEL, /* one value a launch */
  TS_LEVEL_ROW,    /* one value a row (COL: a row of the reduced dim) */
  TS_LEVEL_POINT
} ts_level;

/* Arrays have an entry a node, in the arena given. */
typedef struct ts_loop_plan {
  uint8_t *level;
  bool *needed;    /* some output depends on it */
  int32_t *stage;  /* reductions that lie before it, one after the other: the pass in which it can be had */
  int32_t *weight; /* of the node alone, in simple vector operations */
  int32_t total_weight;
  /* ROW */
  int32_t passes;       /* over the row */
  int32_t *output_pass; /* an entry an output: the pass that stores it (row-level: after which it is stored) */
  int32_t *first;       /* the first pass that works with a node */
  int64_t *saved;       /* -1, or bytes per element in front of the node's row in scratch */
  int64_t saved_bytes;  /* per element */
} ts_loop_plan;

ts_status ts_loop_plan_make(const ts_kernel_desc *desc, ts_arena *arena, ts_loop_plan *out);
/* ROW: marks the nodes that a pass works with; those saved earlier count as leaves. */
void ts_loop_plan_pass(const ts_kernel_desc *desc, const ts_loop_plan *plan, int32_t pass, bool *wanted);

/* The accumulator's type: f32 for half types. */
static inline ts_dtype ts_accumulator_type(ts_dtype type) { return type == TS_F16 || type == TS_BF16 ? TS_F32 : type; }
/* Sums and products of floats are the only reductions whose bits depend on the tree. */
static inline bool ts_reduce_is_exact(ts_opcode op, ts_dtype type) {
  return !ts_dtype_is_float(type) || (op != TS_OP_REDUCE_SUM && op != TS_OP_REDUCE_PRODUCT);
}

#endif
