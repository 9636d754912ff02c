/* For every machine: vectors of 16 bytes by the compiler's own means. */
#include <string.h>

#define VECTOR_BYTES 16
#define ISA(name) name##_base
#if defined(__aarch64__)
#include <arm_neon.h>
#define FMA_32(a, b, c) ((floats)vfmaq_f32((float32x4_t)(c), (float32x4_t)(a), (float32x4_t)(b)))
#define FMA_64(a, b, c) ((doubles)vfmaq_f64((float64x2_t)(c), (float64x2_t)(a), (float64x2_t)(b)))
#define ONE_FMA_32(a, b, c) __builtin_fmaf(a, b, c)
#define ONE_FMA_64(a, b, c) __builtin_fma(a, b, c)
#else
#define FMA_32(a, b, c) ((a) * (b) + (c))
#define FMA_64 FMA_32
#define ONE_FMA_32 FMA_32
#define ONE_FMA_64 FMA_32
#endif
#define STREAM(p, v) memcpy(p, &(v), sizeof(v))
#define STREAM_END() ((void)0)
#include "kernel/conv/window_body.h"
