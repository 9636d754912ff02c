/* Conversions of contiguous elements while they are packed for matrix products; internal to these. Pure functions. */
#ifndef TS_KERNEL_GEMM_WIDEN_H
#define TS_KERNEL_GEMM_WIDEN_H

#include "tensor/dtype.h"

typedef struct gemm_widen {
  /* Elements of a type that products of f32 or f64 read (ts_dtype_widens_to): exact. */
  void (*to_f32)(ts_dtype type, const void *from, int64_t count, void *out);
  void (*to_f64)(ts_dtype type, const void *from, int64_t count, void *out);
  /* Multiplies by scales[i * step]; step is 0 or 1. */
  void (*scale)(const float *scales, int step, int64_t count, float *inout);
  /* Rounds to numbers of f16 or bf16; nothing for other types. */
  void (*round)(ts_dtype type, int64_t count, float *inout);
} gemm_widen;

extern const gemm_widen ts_gemm_widen_base;
#if defined(__x86_64__)
extern const gemm_widen ts_gemm_widen_avx2;
#endif

#endif
