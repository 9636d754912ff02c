#include "kernel/vector_dot.h"

#if defined(__x86_64__)
#include "kernel/isa_avx2.h"

#define FMA32(a, b, c) _mm256_fmadd_ps(a, b, c)
#define FMA64(a, b, c) _mm256_fmadd_pd(a, b, c)
#define FROM_F16(x) (vector_f32) _mm256_cvtph_ps(_mm_loadu_si128((const __m128i *)(const void *)(x)))
#include "kernel/vector_dot_body.h"

#include "kernel/isa_end.h"

#endif
