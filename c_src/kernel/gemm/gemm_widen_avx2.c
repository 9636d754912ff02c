#include "kernel/gemm/gemm_widen.h"

#if defined(__x86_64__)
#include "kernel/isa_avx2.h"

/* Eight elements at `x`. */
#define EIGHT_F16 eight_f16
static inline __m256 eight_f16(const char *x) {
  return _mm256_cvtph_ps(_mm_loadu_si128((const __m128i *)(const void *)x));
}

static inline __m128i eight_bytes(const char *x) {
  return _mm_cvtepu8_epi16(_mm_loadl_epi64((const __m128i *)(const void *)x));
}

/* The upper byte of f16. */
static inline __m256 eight_e5m2(const char *x) { return _mm256_cvtph_ps(_mm_slli_epi16(eight_bytes(x), 8)); }

/* Exponent and mantissa moved to their places in f16 are the number times 2^-8. */
static inline __m256 eight_e4m3fn(const char *x) {
  const __m128i all = eight_bytes(x), largest = _mm_set1_epi16(0x7F);
  const __m128i magnitude = _mm_and_si128(all, largest), sign = _mm_slli_epi16(_mm_andnot_si128(largest, all), 8);
  const __m128i nan = _mm_and_si128(_mm_cmpeq_epi16(magnitude, largest), _mm_set1_epi16(0x7E00));
  const __m128i half = _mm_or_si128(_mm_or_si128(_mm_slli_epi16(magnitude, 7), sign), nan);
  return _mm256_mul_ps(_mm256_cvtph_ps(half), _mm256_set1_ps(256));
}

#include "kernel/gemm/gemm_widen_body.h"

#include "kernel/isa_end.h"
#endif
