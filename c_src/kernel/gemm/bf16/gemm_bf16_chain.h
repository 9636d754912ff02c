/* Tiles of a product of bf16 by AVX512_BF16. Internal to gemm; pure functions of their arguments.
 *
 * VDPBF16PS adds to a float the product of two high halves, then that of the low halves, each by a fused multiply-add.
 * With the earlier of two steps of k in the high half (gemm_bf16.h), that is the chain of tensor/contract_order.h: the
 * bits are those of a product of floats. But numbers below the normal ones count as 0. As with AMX (gemm_amx.h), no
 * such number comes up if every element is 0 or at least 2^-56. Multiply-adds of floats compute other operands. */
#ifndef TS_KERNEL_GEMM_BF16_CHAIN_H
#define TS_KERNEL_GEMM_BF16_CHAIN_H

#include "kernel/gemm/gemm_amx.h"

/* True if the machine has the instruction, and it is as fast as a multiply-add of floats: then it is twice as fast,
 * since it has two terms. AMD's is. Intel's takes four times as long (bench/RESULTS.md). */
bool ts_gemm_has_bf16_chains(void);

/* `k` counts pairs. Of the tile's fields those of AMX alone are ignored. */
void ts_gemm_bf16_chain_run(const gemm_amx_tile *tile);

#endif
