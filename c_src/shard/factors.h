/* Factor rules: which dims of an op's operands and results are cut together. The partitioner knows ops only by these
 * rules. A factor is an index of the op's loop nest, as in Shardy. A dim of an operand or result has a factor, or must
 * be whole. A reduced factor is in no result: when it is cut, results are partial. Where a moved factor is cut, the op
 * on parts is not enough: elements come from other partitions (halo.c) or are masked (masked.c). Pure, thread-safe. */
#ifndef TS_SHARD_FACTORS_H
#define TS_SHARD_FACTORS_H

#include "ir/graph.h"

#define TS_MAX_FACTORS 64
#define TS_FACTOR_TENSORS 16

typedef struct ts_factors {
  int32_t count, operands, tensors;   /* tensors are the operands, then the results */
  ts_opcode reduction;                /* the collective that makes partial results whole */
  bool wide;                          /* partial results are computed in the accumulator's type */
  uint64_t reduced;                   /* a bit for each factor */
  uint64_t moved;                     /* the same: where it is cut, parts are made by moved.c */
  uint8_t by_size[TS_FACTOR_TENSORS]; /* tensors, the largest first */
  const ts_shape *shapes[TS_FACTOR_TENSORS];
  int64_t sizes[TS_MAX_FACTORS];              /* sizes that the parts of a factor must divide; 0: no condition */
  int16_t of[TS_FACTOR_TENSORS][TS_MAX_RANK]; /* by tensor and dim: a factor, or -1; a copy has the op's tensors only */
} ts_factors;

/* How many bytes of it an op has. */
static inline size_t ts_factors_size(const ts_factors *f) {
  return offsetof(ts_factors, of) + (size_t)f->tensors * sizeof f->of[0];
}

/* False when the op has no rule: then its operands are replicated, and so are its results. */
bool ts_factors_of(const ts_graph *graph, const ts_op *op, ts_factors *out);

/* The attributes of an op when its first result has the shape `part` instead of `whole`. */
void ts_factors_localize(const ts_op *op, const ts_shape *whole, const ts_shape *part, ts_attrs *inout);

/* Ops through which a sharding passes first. */
bool ts_factors_pass_through(const ts_op *op);

/* True when the op is linear in these operands together (a bit for each), with the others whole: from terms of a sum it
 * makes terms of the result. */
bool ts_factors_is_linear(const ts_graph *graph, const ts_op *op, uint32_t operands);

#endif
