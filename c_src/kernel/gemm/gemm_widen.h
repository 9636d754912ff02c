/* Loops over contiguous elements for matrix products: conversions while they are packed.
 * Internal to gemm, vector_dot, scan and scatter; pure functions. */
#ifndef TS_KERNEL_GEMM_WIDEN_H
#define TS_KERNEL_GEMM_WIDEN_H

#include "tensor/dtype.h"

/* Rows of `count` contiguous elements each, and the floats that they become. Distances are in bytes. */
typedef struct gemm_widen_rows {
  ts_dtype type;
  const char *from;
  int64_t from_row;
  int64_t rows, count;
  char *out;
  int64_t out_row;
  const float *scales; /* factors of f32: of column i with scale_step 1, of row r with 0 */
  int scale_step;
} gemm_widen_rows;

typedef struct gemm_widen {
  /* Exact conversions of a type that products of f32 or f64 read (ts_dtype_widens_to); to_f32 also scales. */
  void (*to_f32)(const gemm_widen_rows *rows);
  void (*to_f64)(const gemm_widen_rows *rows);
  /* Rounds floats to numbers of f16 or bf16; nothing for other types. */
  void (*round)(const gemm_widen_rows *rows, ts_dtype type);
  /* Rounds floats to a narrow type, or truncates integers of 32 bits; nothing for other types. All NaNs of bf16 become
   * one: AMX makes others than the other kernels do. */
  void (*narrow)(ts_dtype type, const void *from, int64_t count, void *out);
  /* Adds a row of results to another. */
  void (*add_f32)(const float *from, int64_t count, float *to);
  void (*add_f64)(const double *from, int64_t count, double *to);
  /* Adds a row of f16 or bf16 to another: in f32, rounded as by ts_f32_to_f16 and ts_f32_to_bf16. */
  void (*add_half)(ts_dtype type, const uint16_t *from, int64_t count, uint16_t *to);
} gemm_widen;

const gemm_widen *ts_gemm_widen_host(void);

extern const gemm_widen ts_gemm_widen_base;
#if defined(__x86_64__)
extern const gemm_widen ts_gemm_widen_avx2;
#endif

#endif
