/* For every machine: vectors of 16 bytes by the compiler's own means. Where it has no fused multiply-add, products are
 * rounded by themselves, as in kernel/gemm/gemm.h. */
#define VECTOR_BYTES 16
#define ISA(name) name##_base

#if defined(__FP_FAST_FMAF)
#define FMA(a, b, c)                                                                    \
  ((vf){__builtin_fmaf((a)[0], (b)[0], (c)[0]), __builtin_fmaf((a)[1], (b)[1], (c)[1]), \
        __builtin_fmaf((a)[2], (b)[2], (c)[2]), __builtin_fmaf((a)[3], (b)[3], (c)[3])})
#else
#define FMA(a, b, c) ((a) * (b) + (c))
#endif
#define FOUR(type, at) ((vf){(float)(type)(at)[0], (float)(type)(at)[1], (float)(type)(at)[2], (float)(type)(at)[3]})
#define SIGNED(at) FOUR(int8_t, at)
#define UNSIGNED(at) FOUR(uint8_t, at)
#include "kernel/gemm/scaled_row_body.h"
