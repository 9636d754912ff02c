/* Tiles of a product of bf16 by AMX, whose tile registers multiply 16 rows by 16 columns. Internal to gemm; pure
 * functions of their arguments.
 *
 * The instruction TDPBF16PS sums pairs of terms: a chain of the low halves of 16 pairs, and one of the high halves. It
 * adds both sums, and that to an element: the order of tensor/contract_order.h. All of it rounds to nearest, but
 * numbers below the normal ones count as 0. If every element is 0 or at least 2^-56, then products and sums are
 * multiples of 2^-126: 0 or normal numbers. Other operands are multiplied by AVX-512, slowly. */
#ifndef TS_KERNEL_GEMM_AMX_H
#define TS_KERNEL_GEMM_AMX_H

#include "kernel/gemm/gemm_internal.h"

/* Steps in a block of k: pairs or quads. A panel of lhs with this number of steps stays in L1 beside the panels of rhs.
 */
enum { TS_GEMM_AMX_STEPS = 128 };

/* Sets the sizes of tiles: the rows of a panel of lhs, and the columns of a panel of rhs. */
void ts_gemm_amx_set_geometry(ts_gemm_geometry *out);

/* A tile of at most 32 rows and 32 columns, and `k` steps, of pairs or quads: added to out, or stored. */
typedef struct gemm_amx_tile {
  int64_t rows, cols, k;
  const char *lhs, *rhs; /* panels, packed by gemm_bf16.h or gemm_quads.h */
  gemm_amx_product product;
  const char *out;    /* floats, or integers of 32 bits, that are added to */
  char *to;           /* where they are stored: `out`, or another place */
  int64_t out_stride; /* bytes from a row to the next */
  int64_t to_stride;
  bool adds, has_tiny;
  int64_t sizes; /* of the thread's tile registers; 0 before the first tile, and after ts_gemm_amx_end */
} gemm_amx_tile;
void ts_gemm_amx_run(gemm_amx_tile *tile);

/* Tells the CPU that the thread's tile registers hold nothing. Comes after ts_gemm_amx_run. */
void ts_gemm_amx_end(void);

#endif
