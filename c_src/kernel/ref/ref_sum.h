/* Sums of products in the order of tensor/contract_order.h, one term after the other. Internal to the interpreter; a
 * sum belongs to its caller. */
#ifndef TS_KERNEL_REF_SUM_H
#define TS_KERNEL_REF_SUM_H

#include "kernel/ref/ref_internal.h"
#include "tensor/contract_order.h"

typedef struct ts_ref_sum {
  ts_dtype type;
  int64_t terms, chain, block; /* terms so far; of all chains side by side, and of a block */
  int lanes;                   /* chains side by side */
  ts_scalar in_chain[TS_CONTRACT_MAX_LANES], in_block;
  int64_t blocks;       /* complete ones */
  ts_scalar levels[64]; /* [i]: the sum of 2^i neighbouring blocks where bit i of `blocks` is set */
} ts_ref_sum;

/* In f32, f64 or a complex type; `order` counts real terms. */
void ts_ref_sum_start(ts_ref_sum *s, ts_dtype type, ts_contract_order order);
void ts_ref_sum_add(ts_ref_sum *s, ts_scalar l, ts_scalar r);
ts_scalar ts_ref_sum_end(ts_ref_sum *s);

#endif
