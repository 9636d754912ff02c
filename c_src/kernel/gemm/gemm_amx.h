/* Tiles of a product of bf16 by AMX, whose tile registers multiply 16 rows by 16 columns. Internal to gemm; pure
 * functions of their arguments.
 *
 * The instruction TDPBF16PS sums pairs of terms: a chain of the low halves of 16 pairs, and one of the high halves. It
 * adds both sums, and that to an element: the order of tensor/contract_order.h. All of it rounds to nearest, but
 * numbers below the normal ones count as 0. If every element is 0 or at least 2^-56, then products and sums are
 * multiples of 2^-126: 0 or normal numbers. AVX-512 multiplies other operands, slowly. It also multiplies the later
 * blocks of k, because their sums can be below the normal numbers. */
#ifndef TS_KERNEL_GEMM_AMX_H
#define TS_KERNEL_GEMM_AMX_H

#include "kernel/gemm/gemm_internal.h"

/* Steps in a block of k: pairs or quads. A panel of lhs with this number of steps, 32 KB, stays in L1 while panels of
 * rhs come from L2: then AMX waits for neither. */
enum { TS_GEMM_AMX_STEPS = 256 };

/* Sets the sizes of tiles: the rows of a panel of lhs, and the columns of a panel of rhs. */
void ts_gemm_amx_set_geometry(ts_gemm_geometry *out);

/* Rows of sums that are rounded to bf16, 32 floats each. */
typedef struct gemm_amx_rounding {
  const char *sums;
  char *to;
  int64_t stride; /* bytes from a row of `to` to the next */
  int64_t rows, cols;
} gemm_amx_rounding;
void ts_gemm_amx_round(gemm_amx_rounding *rounding);

/* Rows of memory that the caller will pack. */
typedef struct gemm_amx_ahead {
  const char *at;
  int64_t stride, rows, bytes; /* bytes: of a row */
  int64_t line;                /* bytes of the first row that are fetched already */
  int64_t pace;                /* lines that are fetched while AMX multiplies for one chain */
} gemm_amx_ahead;

/* A tile of at most 32 rows and 32 columns. It sums `k` steps of pairs or quads. */
typedef struct gemm_amx_tile {
  int64_t rows, cols, k;
  const char *lhs, *rhs; /* panels, packed by gemm_bf16.h or gemm_quads.h */
  gemm_amx_product product;
  const char *out;    /* floats or integers of 32 bits: the run adds to them if `adds` */
  char *to;           /* the run stores its sums here: in `out`, or in another place */
  int64_t out_stride; /* bytes from a row to the next */
  int64_t to_stride;
  bool adds;
  bool has_tiny;              /* panels of this or an earlier block of k have tiny elements */
  gemm_amx_rounding rounding; /* of another tile: the run rounds some of its rows */
  gemm_amx_ahead ahead;       /* the run fetches some of these rows */
  int64_t sizes;              /* of the thread's tile registers; 0 before the first tile, and after ts_gemm_amx_end */
} gemm_amx_tile;
void ts_gemm_amx_run(gemm_amx_tile *tile);

/* A function that fills memory calls this before a tile register is loaded from it. GCC's functions that load tile
 * registers do not tell the compiler that they read memory. */
static inline void gemm_amx_will_read(const void *memory) { __asm__ volatile("" : : "r"(memory) : "memory"); }

/* Tells the CPU that the thread's tile registers hold nothing. Comes after ts_gemm_amx_run. */
void ts_gemm_amx_end(void);

#endif
