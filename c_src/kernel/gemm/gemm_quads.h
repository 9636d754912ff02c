/* Products of integers of 8 bits, four steps of k at a time, by AMX or by AVX512_VNNI. Internal to gemm; pure functions
 * of their arguments. Sums are exact modulo 2^32 in any order.
 *
 * An element of a packed operand is a quad: four steps of k of a row or column, the last one filled up with zeros.
 * A panel of rhs has the first quads of its 32 columns, then the second ones, and so on. A panel of lhs has the form of
 * gemm_amx.h. */
#ifndef TS_KERNEL_GEMM_QUADS_H
#define TS_KERNEL_GEMM_QUADS_H

#include "kernel/gemm/gemm_amx.h"

enum { TS_GEMM_QUAD = 4 };

/* The product of operands with these types; GEMM_AMX_NONE if the machine has no instructions for it. */
gemm_amx_product ts_gemm_quads_product(const ts_gemm_types *types);

/* Packs columns of rhs, and rows of lhs; `k` counts elements. */
void ts_gemm_quads_pack_right(const gemm_pack *pack, const char *source, int64_t units, int64_t k, char *panels);
void ts_gemm_quads_pack_left(const gemm_pack *pack, gemm_amx_product product, const char *source, int64_t units,
                             int64_t k, char *panels);

/* A tile of quads or of pairs of bf16, by ts_gemm_amx_run where the CPU has AMX; `k` counts elements of packed
 * operands. ts_gemm_own_end comes after the last tile. */
void ts_gemm_own_run(gemm_amx_tile *tile);
void ts_gemm_own_end(void);

#endif
