/* LU factors of one matrix with partial pivoting, by panels of columns. Every element of the factors, and of the right
 * side's solution by L, is one chain of multiply-adds: the bits depend neither on threads nor on strips. */
#ifndef TS_KERNEL_LU_PANELS_H
#define TS_KERNEL_LU_PANELS_H

#include "kernel/linalg/linalg.h"

typedef struct lu_factors {
  ts_linalg_solver with;
  ts_opcode op;
  int64_t n, cols; /* cols: of the right side; may be 0 */
  const char *a;   /* n dense rows */
  const char *b;   /* n dense rows of `cols` */
  char *x;         /* out: L^-1 P b, as dense; must not overlap b */
  char *factors;   /* out: n rows, lu_pitch(n) elements apart: U, and L below it, whose rows are in the order they had
                      when their panel was factored. Of a panel's L only the first rows, unless keeps_lower */
  int64_t *pivots; /* out: row i was exchanged with pivots[i] */
  int64_t *order;  /* out: row i was row order[i] of the matrix */
  char *room;      /* lu_room_elements, aligned to 64 bytes */
  bool keeps_lower;
} lu_factors;

/* Elements from a row to the next: no power of two, so that a strip's rows fit into the first cache. */
static inline int64_t lu_pitch(int64_t n) { return ((n + 15) / 16 | 1) * 16; }
/* Elements of a panel's lower rows, packed for products; none up to TS_LINALG_BLOCK rows. */
static inline int64_t lu_below_elements(const ts_gemm *gemm, int64_t n) {
  return gemm ? (ts_gemm_left_elements(gemm, n, TS_LINALG_BLOCK) + 15) / 16 * 16 : 0;
}
/* Two panels: their columns and sums, first rows, and rows below. */
static inline int64_t lu_room_elements(const ts_gemm *gemm, int64_t n) {
  return 4 * TS_LINALG_BLOCK * lu_pitch(n) + 2 * TS_LINALG_BLOCK * TS_LINALG_BLOCK + 2 * lu_below_elements(gemm, n);
}

ts_status lu_factor(const lu_factors *f);

#endif
