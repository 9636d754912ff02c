/* Sums of products in the order of tensor/contract_order.h, one term after the other. Internal to the interpreter; a
 * sum belongs to its caller. */
#ifndef TS_KERNEL_REF_SUM_H
#define TS_KERNEL_REF_SUM_H

#include "kernel/ref/ref_internal.h"

typedef struct ts_ref_sum {
  ts_dtype type;
  int64_t terms, chain, block; /* terms so far; of a chain and of a block */
  ts_scalar in_chain, in_block;
  int64_t blocks;       /* complete ones */
  ts_scalar levels[64]; /* [i]: the sum of 2^i neighbouring blocks where bit i of `blocks` is set */
} ts_ref_sum;

/* In f32, f64 or a complex type; `chain` counts real terms. */
void ts_ref_sum_start(ts_ref_sum *s, ts_dtype type, int64_t chain);
void ts_ref_sum_add(ts_ref_sum *s, ts_scalar l, ts_scalar r);
ts_scalar ts_ref_sum_end(ts_ref_sum *s);

#endif
