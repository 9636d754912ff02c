#include "kernel/gemm/thin/thin.h"

#if defined(__x86_64__)
#include "kernel/inline.h"
#include "kernel/isa_avx2.h"

#include <stdint.h>

INLINE __m128 piece(const char *line, int64_t at) { return _mm_loadu_ps((const float *)(const void *)(line + at)); }

INLINE __m256 join(const char *const *lines, int64_t step, int64_t at) {
  return _mm256_insertf128_ps(_mm256_castps128_ps256(piece(lines[0], at)), piece(lines[step], at), 1);
}

#define JOIN(lines, step, at) join(lines, step, at)
#define LOW32(a, b) ((V)_mm256_unpacklo_ps((__m256)(a), (__m256)(b)))
#define HIGH32(a, b) ((V)_mm256_unpackhi_ps((__m256)(a), (__m256)(b)))
#define LOW64(a, b) ((V)_mm256_unpacklo_pd((__m256d)(a), (__m256d)(b)))
#define HIGH64(a, b) ((V)_mm256_unpackhi_pd((__m256d)(a), (__m256d)(b)))
#define FMA32(a, b, c) _mm256_fmadd_ps(a, b, c)
#define FMA64(a, b, c) _mm256_fmadd_pd(a, b, c)
#define SPREAD32(a) _mm256_set1_ps(a)
#define SPREAD64(a) _mm256_set1_pd(a)
#include "kernel/gemm/thin/thin_body.h"

#include "kernel/isa_end.h"

#endif
