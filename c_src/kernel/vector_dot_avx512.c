#include "kernel/vector_dot.h"

#if defined(__x86_64__)
#include "kernel/isa_avx512.h"

#define FMA32(a, b, c) _mm512_fmadd_ps(a, b, c)
#define FMA64(a, b, c) _mm512_fmadd_pd(a, b, c)
#define FROM_F16(x) (vector_f32) _mm512_cvtph_ps(_mm256_loadu_si256((const __m256i *)(const void *)(x)))
#include "kernel/vector_dot_body.h"

#include "kernel/isa_end.h"

#endif
