/* One row times a matrix of 8 bits whose columns have scales: bytes are converted and scaled in registers, so that the
 * matrix is read once, where it lies. Internal to gemm; pure functions of their arguments. */
#ifndef TS_KERNEL_SCALED_ROW_H
#define TS_KERNEL_SCALED_ROW_H

#include "kernel/gemm/gemm_internal.h"

/* Columns of a matrix of s8 or u8 times a row of f32: the elements of a row or those of a column are neighbours. The
 * buffers have room for whole blocks. */
enum { SCALED_ROW_BLOCK = 64 };
typedef struct scaled_row {
  const float *x;
  const char *matrix;
  int64_t row, col; /* bytes from a row of the matrix to the next, and from a column; one of them is 1 */
  int64_t k, cols;
  const float *scales;
  float *sums, *chains; /* the results; those of a chain that has begun */
  bool is_signed;
  bool rounds; /* scaled elements, to bf16: then scales are finite */
} scaled_row;

typedef struct scaled_row_code {
  void (*run)(const scaled_row *r);
} scaled_row_code;

/* True for products that ts_gemm_run_scaled_row computes. */
bool ts_gemm_is_scaled_row(const gemm_run *run);
ts_status ts_gemm_run_scaled_row(const gemm_run *run);

extern const scaled_row_code ts_scaled_row_base;
#if defined(__x86_64__)
extern const scaled_row_code ts_scaled_row_avx2, ts_scaled_row_avx512;
#endif

#endif
