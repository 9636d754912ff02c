#include "kernel/inline.h"
#include "kernel/pick.h"

#if defined(__x86_64__)
#include "kernel/isa_avx2.h"

#define LANES32 8
#define LANES64 4
#define SOME32 some32
#define SOME64 some64

/* The lanes of the set bits of `in`, 8 bits, in order: each lane is a byte, and the bits select the bytes. */
INLINE __m256i lanes_of(unsigned in) {
  const uint64_t bytes = _pdep_u64(in, UINT64_C(0x0101010101010101)) * 255;
  return _mm256_cvtepu8_epi32(_mm_cvtsi64_si128((int64_t)_pext_u64(UINT64_C(0x0706050403020100), bytes)));
}

INLINE int64_t some32(const uint32_t *x, int64_t i, uint32_t first, uint32_t span, uint32_t *values,
                      uint32_t *indices) {
  const __m256i v = _mm256_loadu_si256((const __m256i *)x), from = _mm256_sub_epi32(v, _mm256_set1_epi32((int)first));
  const __m256i least = _mm256_min_epu32(from, _mm256_set1_epi32((int)span));
  const unsigned in = (unsigned)_mm256_movemask_ps(_mm256_castsi256_ps(_mm256_cmpeq_epi32(least, from)));
  if (!in) return 0;
  const __m256i lanes = lanes_of(in);
  _mm256_storeu_si256((__m256i *)values, _mm256_permutevar8x32_epi32(v, lanes));
  _mm256_storeu_si256((__m256i *)indices, _mm256_add_epi32(lanes, _mm256_set1_epi32((int)i)));
  return __builtin_popcount(in);
}

/* Comparisons of 64 bits are signed. A number of 64 bits is two lanes of 32. */
INLINE int64_t some64(const uint64_t *x, int64_t i, uint64_t first, uint64_t span, uint64_t *values,
                      uint32_t *indices) {
  const __m256i v = _mm256_loadu_si256((const __m256i *)x),
                from = _mm256_sub_epi64(v, _mm256_set1_epi64x((int64_t)first));
  const __m256i signs = _mm256_set1_epi64x(INT64_MIN), last = _mm256_set1_epi64x((int64_t)(span ^ (UINT64_C(1) << 63)));
  const __m256i past = _mm256_cmpgt_epi64(_mm256_xor_si256(from, signs), last);
  const unsigned in = ~(unsigned)_mm256_movemask_pd(_mm256_castsi256_pd(past)) & 15;
  if (!in) return 0;
  const __m128i lanes = _mm256_castsi256_si128(lanes_of(in));
  const __m256i halves = lanes_of((unsigned)_pdep_u64(in, 0x55) * 3);
  _mm256_storeu_si256((__m256i *)values, _mm256_permutevar8x32_epi32(v, halves));
  _mm_storeu_si128((__m128i *)indices, _mm_add_epi32(lanes, _mm_set1_epi32((int)i)));
  return __builtin_popcount(in);
}
#include "kernel/pick_body.h"

#include "kernel/isa_end.h"

#endif
