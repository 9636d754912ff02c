/* Accumulators of reductions, for ROW and COL: identities, steps and combining, one vector or one pair of vectors
 * (value and index) at a time. */
#ifndef TS_JIT_LOOP_REDUCE_H
#define TS_JIT_LOOP_REDUCE_H

#include "ir/combiner.h"
#include "jit/loop/loop_body.h"

/* A reduction's accumulator: `index` is for ARG only. */
typedef struct ts_acc {
  ts_v value, index;
} ts_acc;

typedef struct ts_reducer {
  ts_node_kind kind;
  ts_opcode op;          /* of the node */
  const ts_combiner *by; /* REDUCE; otherwise NULL */
  ts_dtype operand;      /* type of the node's operand */
  ts_dtype type;         /* of `value` */
  ts_dtype result;       /* of the node */
  bool high;             /* ARG: the last of equals */
} ts_reducer;

ts_reducer ts_reducer_of(const ts_kernel_desc *desc, int32_t node);
/* True when the bits depend on the order: then the lanes follow tensor/reduce_tree.h. */
static inline bool ts_reducer_needs_tree(const ts_reducer *r) {
  return r->kind == TS_NODE_REDUCE && !ts_reduce_is_exact(r->op, r->type);
}
/* An empty accumulator. ARG: lane i first receives element i of `first` (i32 vector). */
ts_acc ts_reducer_identity(ts_emit *e, const ts_reducer *r, ts_v first);
/* Adds operand `x` (register form of the node's operand) to an accumulator, at index `at` (i32 vector, ARG): later than
 * all indices before. Only in the lanes of `mask`, if that is not NULL. */
ts_status ts_reducer_step(ts_emit *e, const ts_reducer *r, ts_acc acc, ts_acc x, ts_v mask, ts_acc *out);
ts_status ts_reducer_combine(ts_emit *e, const ts_reducer *r, ts_acc a, ts_acc b, ts_acc *out);
/* Combines `count` (a power of two) accumulators, then their lanes by halving; the result is in all lanes. */
ts_status ts_reducer_collapse(ts_emit *e, const ts_reducer *r, ts_acc *accs, int count, ts_v *out);
/* The same of `columns` that take turns, a power of two: lane i of the result is of the lanes that differ from i by a
 * multiple of it. Not for ARG. */
ts_status ts_reducer_collapse_columns(ts_emit *e, const ts_reducer *r, ts_acc *accs, int count, unsigned columns,
                                      ts_v *out);
/* Combines the accumulators of the first `count` lanes of tensor/reduce_tree.h, of one element each. */
ts_status ts_reducer_few(ts_emit *e, const ts_reducer *r, ts_acc *accs, int64_t count, ts_v *out);
/* The accumulator of ARG, or of a maximum or minimum, that no later element replaces where the first of equals counts:
 * a NaN, or of integers the best number. As if it came from element 0. */
ts_acc ts_reducer_final(ts_emit *e, const ts_reducer *r);
/* i1: true when a lane of one of `count` accumulators is such an element. */
ts_v ts_reducer_is_final(ts_emit *e, const ts_reducer *r, const ts_acc *accs, int count);
/* ARG: whether x is strictly better than y, false for NaN; x if that is so, otherwise y; and the best of all lanes of a
 * vector without NaN, in all lanes. */
ts_v ts_reducer_is_better(ts_emit *e, const ts_reducer *r, ts_v x, ts_v y);
ts_v ts_reducer_better(ts_emit *e, const ts_reducer *r, ts_v x, ts_v y);
ts_v ts_reducer_best(ts_emit *e, const ts_reducer *r, ts_v x);
/* i1: true when any of the lanes is. */
ts_v ts_reducer_any(ts_emit *e, ts_v lanes);
/* Converts an accumulator to the node's value. */
ts_v ts_reducer_finish(ts_emit *e, const ts_reducer *r, ts_acc acc);

#endif
