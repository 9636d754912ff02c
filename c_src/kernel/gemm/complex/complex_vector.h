/* A matrix of complex numbers times a few vectors, on either side: the matrix is read once, where it lies. The sums
 * have the order of tensor/contract_order.h, a term being two terms of parts. Internal to gemm; thread-safe. */
#ifndef TS_KERNEL_COMPLEX_VECTOR_H
#define TS_KERNEL_COMPLEX_VECTOR_H

#include "kernel/gemm/gemm_internal.h"
#include "kernel/inline.h"

/* True for products that ts_gemm_run_complex_vector computes. */
bool ts_gemm_is_complex_vector(const gemm_run *run);
ts_status ts_gemm_run_complex_vector(const gemm_run *run);

/* ---- the code of an instruction set ---- */

/* Numbers in one chain, and in a block of chains. */
enum { COMPLEX_CHAIN = TS_CONTRACT_CHAIN / 2, COMPLEX_BLOCK = TS_CONTRACT_BLOCK / 2 };
/* Vectors whose sums are in registers together; steps of k whose lines are turned together; rows of a wide matrix that
 * are read together. */
enum { COMPLEX_VECTORS = 8, COMPLEX_TURNED = 32, COMPLEX_ROWS = 32 };
enum { COMPLEX_ITEMS = 12 };  /* at most */
enum { COMPLEX_TINY = 32 };   /* terms of each vector, up to which loops over single numbers are faster */
enum { COMPLEX_AHEAD = 512 }; /* bytes of a line that are fetched early: the machine follows only a few lines */

/* result[i][r] = the sum over k of v[i][k] * x[r][k], for `results` results of each of `items` vectors. Distances are
 * in parts. */
typedef struct complex_vectors {
  const char *x, *v;
  int64_t x_result, x_k, v_item, v_k;
  bool x_is_left;            /* else v is */
  int64_t items, results, k; /* k <= COMPLEX_BLOCK */
  int64_t pitch;             /* of results, in parts: complex_vector_pitch */
  char *sums;                /* the results: of item i from i * pitch on */
  char *chains;              /* as much memory, for chains that are computed */
  char *factors;             /* complex_vector_factors(items, part) bytes */
  char *turned;              /* complex_vector_turned(vector_bytes) bytes, where results are no neighbours */
} complex_vectors;

/* Rows of neighbouring numbers of rhs for gemm_pack_complex.c: panels of `width` parts, in whole, of `steps` numbers
 * along k, each of which is two rows of a panel. */
typedef struct complex_rows {
  const char *from;
  int64_t step; /* from row to row, in parts */
  int64_t steps, panels, width;
  char *to;
  int64_t panel_bytes;
} complex_rows;

typedef struct complex_vector_code {
  void (*f32)(const complex_vectors *p);
  void (*f64)(const complex_vectors *p);
  void (*pack_f32)(const complex_rows *p);
  void (*pack_f64)(const complex_rows *p);
  int64_t vector_bytes;
} complex_vector_code;

static inline int64_t complex_vector_pitch(int64_t results, int64_t vector_bytes, int64_t part) {
  return gemm_round_up(2 * results, COMPLEX_VECTORS * vector_bytes / part);
}
static inline int64_t complex_vector_factors(int64_t items, int64_t part) {
  return items * COMPLEX_CHAIN * COMPLEX_VECTORS * 4 * part;
}
static inline int64_t complex_vector_turned(int64_t vector_bytes) {
  return COMPLEX_TURNED * COMPLEX_VECTORS * vector_bytes;
}

extern const complex_vector_code ts_complex_vector_base;
#if defined(__x86_64__)
extern const complex_vector_code ts_complex_vector_avx2, ts_complex_vector_avx512;
#endif

#endif
