/* The order of the sums of matrix products and convolutions. Part of an op's meaning: the interpreter and the kernels
 * follow it, so that all paths give the same bits. It depends on the number of terms alone, not on other dims.
 *
 * Let k = 0 .. n-1 number the terms, in row-major order over the contracted dims in the order of the attributes.
 * TS_CONTRACT_CHAIN consecutive terms make a chain of fused multiply-adds from +0. The chains of TS_CONTRACT_BLOCK
 * terms are added one after the other, the first one being the start. With more than one such block, neighbouring
 * blocks are added in pairs, then neighbouring pairs, until one is left; the last of an odd number passes on unchanged.
 * f16 and bf16 do all of it in f32 and round once, at the end.
 *
 * Products whose result is bf16 follow AMX on machines of its class: 2 * TS_CONTRACT_TILE_CHAIN consecutive terms make
 * two chains from +0 side by side: one has the terms with even k, the other those with odd k. The sum of both is added
 * to the chains before, as an instruction of AMX does. So do convolutions that are products (ts_conv_is_point);
 * others have the chains above.
 *
 * So a sum in chains of CHAIN terms has the error of at most CHAIN + BLOCK / CHAIN + log2(n / BLOCK) roundings; one
 * chain would have n. A product of up to BLOCK terms needs no memory but its result: a tile keeps a chain in registers,
 * and adds it to the result.
 *
 * A complex term counts twice: its parts are two real terms (kernel/ref/ref_complex.c). A contraction without free dims
 * has an order of its own (tensor/dot_order.h). */
#ifndef TS_TENSOR_CONTRACT_ORDER_H
#define TS_TENSOR_CONTRACT_ORDER_H

#include "tensor/dtype.h"

#define TS_CONTRACT_CHAIN 128
#define TS_CONTRACT_TILE_CHAIN 16
#define TS_CONTRACT_BLOCK 8192

/* The chains of a product with results of this type: `lanes` chains side by side, of `terms` terms each. Chain i has
 * the terms i, i + lanes, i + 2 lanes and so on. */
typedef struct ts_contract_order {
  int64_t terms;
  int lanes;
} ts_contract_order;
enum { TS_CONTRACT_MAX_LANES = 2 };

/* `amx` is ts_target.amx of the host. */
static inline ts_contract_order ts_contract_order_of(ts_dtype out, bool amx) {
  return amx && out == TS_BF16 ? (ts_contract_order){TS_CONTRACT_TILE_CHAIN, 2}
                               : (ts_contract_order){TS_CONTRACT_CHAIN, 1};
}

#endif
