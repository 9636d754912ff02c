/* Tiles of a product of bf16 by AMX, whose tile registers multiply 16 rows by 16 columns. Internal to gemm; pure
 * functions of their arguments.
 *
 * The instruction TDPBF16PS sums pairs of terms: the low halves of a chain of 16 pairs, the high halves of it, and adds
 * both sums to an element. Packed elements are f32 whose low half is 0, as other kernels have them. So the high halves
 * are a chain of 16 terms in their order, as tensor/contract_order.h wants. All of it rounds to nearest, but numbers
 * below the normal ones count as 0. If every element is 0 or at least 2^-56, then products and sums are multiples of
 * 2^-126: 0 or normal numbers. Other operands are multiplied by AVX-512, slowly. */
#ifndef TS_KERNEL_GEMM_AMX_H
#define TS_KERNEL_GEMM_AMX_H

#include "kernel/gemm/gemm_internal.h"

/* Steps of k in a block. A panel of lhs with this number of steps stays in L1 beside the panels of rhs. */
enum { TS_GEMM_AMX_STEPS = 128 };

/* Sets the sizes of tiles: the rows of a panel of lhs, and the columns of a panel of rhs. */
void ts_gemm_amx_set_geometry(ts_gemm_geometry *out);

/* True if any of the packed elements is neither 0 nor at least 2^-56. */
bool ts_gemm_amx_has_tiny(const char *panels, int64_t elements);

/* Packs rows of lhs into panels of 32. A panel has the first 16 steps of k of each row, row after row, then the
 * next 16 steps, and so on; the last steps may be fewer. Returns whether any element is tiny. */
bool ts_gemm_amx_pack_left(const gemm_pack *pack, const char *source, int64_t units, int64_t k, char *panels);

/* A tile of at most 32 rows and 32 columns, and `k` steps: added to out, or stored. */
typedef struct gemm_amx_tile {
  int64_t rows, cols, k;
  const char *lhs, *rhs; /* a panel, packed by ts_gemm_amx_pack_left, and one packed by ts_gemm_pack */
  gemm_amx_product product;
  char *out;          /* floats, or integers of 32 bits */
  int64_t out_stride; /* bytes */
  bool adds, has_tiny;
  int64_t sizes; /* of the thread's tile registers; 0 before the first tile, and after ts_gemm_amx_end */
} gemm_amx_tile;
void ts_gemm_amx_run(gemm_amx_tile *tile);

/* Tells the CPU that the thread's tile registers hold nothing. Comes after ts_gemm_amx_run. */
void ts_gemm_amx_end(void);

#endif
