/* The order of the sums of contractions without free dims, as of two vectors, of real floats. Part of an op's meaning:
 * the interpreter and kernel/vector_dot.c follow it, so that all paths give the same bits. It depends on the number of
 * terms alone, not on batches or threads. Which sums it holds for depends on the ranks of the operands: the product
 * {1, k}·{k, 1} has free dims, and follows tensor/contract_order.h. Sums of integers have the same bits in any order;
 * complex numbers follow tensor/reduce_tree.h (pass/vector_dot.h).
 *
 * Let k = 0 .. n-1 number the terms, in row-major order over the contracted dims in the order of the attributes. Lane l
 * takes the terms k = l (mod ts_dot_lanes). A lane's TS_DOT_CHAIN consecutive terms are a chain of fused multiply-adds
 * from +0; a lane without a term is +0. Each lane adds TS_DOT_CHAINS chains one after the other, the first one being
 * the start: the lanes' terms are a block. Then lanes combine by halving: sum[l] = sum[l] + sum[l + h] for h = lanes /
 * 2, ..., 2, 1. With more than one block, neighbouring blocks are added in pairs, then neighbouring pairs, until one is
 * left; the last of an odd number passes on unchanged. No terms give +0. f16 and bf16 do all of it in f32 and round
 * once, at the end. Without the hardware for it, products round before they are added, as in other products.
 *
 * So a sum has the error of at most CHAIN + CHAINS + log2(lanes) + log2(blocks) roundings. The number of lanes is the
 * number of accumulators that hide the latency of a fused multiply-add; lanes have the same bytes for each type. */
#ifndef TS_TENSOR_DOT_ORDER_H
#define TS_TENSOR_DOT_ORDER_H

#include <stdint.h>

#define TS_DOT_LANE_BYTES 256
#define TS_DOT_CHAIN 16
#define TS_DOT_CHAINS 16
#define TS_DOT_MAX_LANES (TS_DOT_LANE_BYTES / 4)

/* For elements of `size` bytes, as they are summed: 64 of f32, 32 of f64. */
static inline int64_t ts_dot_lanes(int64_t size) { return TS_DOT_LANE_BYTES / size; }
/* The terms of a block: 16384 of f32, 8192 of f64. */
static inline int64_t ts_dot_block(int64_t size) { return ts_dot_lanes(size) * TS_DOT_CHAIN * TS_DOT_CHAINS; }

#endif
