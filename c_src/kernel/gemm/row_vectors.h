/* Vectors of f32 for the loops over one or a few rows, in the file of an instruction set, which defines VECTOR_BYTES:
 * 16, 32 or 64. */
#ifndef TS_KERNEL_ROW_VECTORS_H
#define TS_KERNEL_ROW_VECTORS_H

#include "kernel/inline.h"

#include <stdint.h>
#include <string.h>

typedef float vf __attribute__((vector_size(VECTOR_BYTES)));
typedef uint32_t vu __attribute__((vector_size(VECTOR_BYTES)));

/* a * b + c. Where the machine has no fused multiply-add, products are rounded by themselves, as in kernel/gemm/gemm.h.
 */
#if VECTOR_BYTES == 64
#define FMA(a, b, c) ((vf)_mm512_fmadd_ps((__m512)(a), (__m512)(b), (__m512)(c)))
#elif VECTOR_BYTES == 32
#define FMA(a, b, c) ((vf)_mm256_fmadd_ps((__m256)(a), (__m256)(b), (__m256)(c)))
#elif defined(__FP_FAST_FMAF)
#define FMA(a, b, c)                                                                    \
  ((vf){__builtin_fmaf((a)[0], (b)[0], (c)[0]), __builtin_fmaf((a)[1], (b)[1], (c)[1]), \
        __builtin_fmaf((a)[2], (b)[2], (c)[2]), __builtin_fmaf((a)[3], (b)[3], (c)[3])})
#else
#define FMA(a, b, c) ((a) * (b) + (c))
#endif

INLINE vf load_f(const float *at) {
  vf v;
  memcpy(&v, at, sizeof v);
  return v;
}
INLINE void store_f(float *at, vf v) { memcpy(at, &v, sizeof v); }
INLINE vf splat_f(float x) { return x - (vf){0}; }

/* Numbers rounded to bf16; none is NaN. */
INLINE vf rounded(vf v) {
  const vu u = (vu)v;
  return (vf)((u + 0x7FFF + ((u >> 16) & 1)) & 0xFFFF0000u);
}

#endif
