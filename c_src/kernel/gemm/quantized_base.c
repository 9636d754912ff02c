/* For every machine: vectors of 16 bytes by the compiler's own means. Where it has no fused multiply-add, products are
 * rounded by themselves, as in kernel/gemm/gemm.h. */
#include <stdbool.h>
#include <stdint.h>

#define VECTOR_BYTES 16
#define ISA(name) name##_base

#if defined(__FP_FAST_FMAF)
#define FMA(a, b, c)                                                                    \
  ((vf){__builtin_fmaf((a)[0], (b)[0], (c)[0]), __builtin_fmaf((a)[1], (b)[1], (c)[1]), \
        __builtin_fmaf((a)[2], (b)[2], (c)[2]), __builtin_fmaf((a)[3], (b)[3], (c)[3])})
#else
#define FMA(a, b, c) ((a) * (b) + (c))
#endif
#define HALVES(at) \
  ((vf){ts_f16_to_f32((at)[0]), ts_f16_to_f32((at)[1]), ts_f16_to_f32((at)[2]), ts_f16_to_f32((at)[3])})
#define WORDS(at) ((vu){(at)[0], (at)[1], (at)[2], (at)[3]})
static inline bool every(uint32_t a, uint32_t b, uint32_t c, uint32_t d) { return (a & b & c & d) == UINT32_MAX; }
#define EVERY(x) every((x)[0], (x)[1], (x)[2], (x)[3])
#include "kernel/gemm/quantized_body.h"
