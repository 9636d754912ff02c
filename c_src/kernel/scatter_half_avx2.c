/* Pieces of 8, 4, 2 and 1 columns: a row that is added to again soon is read as it was written, so no load waits until
 * a store has reached the cache. */
#include "kernel/inline.h"
#include "kernel/scatter_rows.h"

#include <string.h>

#if defined(__x86_64__)
#include "kernel/isa_avx2.h"

/* In the upper halves of f32. */
INLINE __m256i rounded_8(__m256 sum) {
  const __m256i v = _mm256_castps_si256(sum), one = _mm256_set1_epi32(1);
  const __m256i odd = _mm256_and_si256(_mm256_srli_epi32(v, 16), one);
  const __m256i even = _mm256_add_epi32(_mm256_add_epi32(v, _mm256_set1_epi32(0x7FFF)), odd);
  const __m256i quiet = _mm256_or_si256(v, _mm256_set1_epi32(0x400000));
  return _mm256_blendv_epi8(even, quiet, _mm256_castps_si256(_mm256_cmp_ps(sum, sum, _CMP_UNORD_Q)));
}

INLINE __m128i rounded_4(__m128 sum) {
  const __m128i v = _mm_castps_si128(sum), odd = _mm_and_si128(_mm_srli_epi32(v, 16), _mm_set1_epi32(1));
  const __m128i even = _mm_add_epi32(_mm_add_epi32(v, _mm_set1_epi32(0x7FFF)), odd);
  const __m128i quiet = _mm_or_si128(v, _mm_set1_epi32(0x400000));
  return _mm_blendv_epi8(even, quiet, _mm_castps_si128(_mm_cmpunord_ps(sum, sum)));
}

INLINE __m256 wide_8(__m128i x) { return _mm256_castsi256_ps(_mm256_slli_epi32(_mm256_cvtepu16_epi32(x), 16)); }

INLINE __m128i sum_8_bf16(__m128i x, __m128i y) {
  const __m256i sum = _mm256_srli_epi32(rounded_8(_mm256_add_ps(wide_8(x), wide_8(y))), 16);
  return _mm_packus_epi32(_mm256_castsi256_si128(sum), _mm256_extracti128_si256(sum, 1));
}

INLINE __m128i sum_4_bf16(__m128i x, __m128i y) {
  const __m128i none = _mm_setzero_si128();
  const __m128 a = _mm_castsi128_ps(_mm_unpacklo_epi16(none, x)), b = _mm_castsi128_ps(_mm_unpacklo_epi16(none, y));
  const __m128i sum = _mm_srli_epi32(rounded_4(_mm_add_ps(a, b)), 16);
  return _mm_packus_epi32(sum, sum);
}

INLINE __m128i sum_8_f16(__m128i x, __m128i y) {
  return _mm256_cvtps_ph(_mm256_add_ps(_mm256_cvtph_ps(x), _mm256_cvtph_ps(y)), _MM_FROUND_TO_NEAREST_INT);
}

INLINE __m128i sum_4_f16(__m128i x, __m128i y) {
  return _mm_cvtps_ph(_mm_add_ps(_mm_cvtph_ps(x), _mm_cvtph_ps(y)), _MM_FROUND_TO_NEAREST_INT);
}

/* `bytes` is a constant. */
INLINE __m128i load(const uint16_t *x, int bytes) {
  uint64_t whole = 0;
  memcpy(&whole, x, (size_t)bytes);
  return bytes > 4 ? _mm_cvtsi64_si128((int64_t)whole) : _mm_cvtsi32_si128((int)whole);
}

INLINE void store(uint16_t *x, int bytes, __m128i v) {
  const uint64_t whole = bytes > 4 ? (uint64_t)_mm_cvtsi128_si64(v) : (uint32_t)_mm_cvtsi128_si32(v);
  memcpy(x, &whole, (size_t)bytes);
}

#define DEFINE_ADD(TYPE)                                                            \
  INLINE void add_row_##TYPE(uint16_t *x, const uint16_t *y, int64_t columns) {     \
    int64_t c = 0;                                                                  \
    for (; c + 8 <= columns; c += 8) {                                              \
      const __m128i a = _mm_loadu_si128((const __m128i *)(const void *)(x + c));    \
      const __m128i b = _mm_loadu_si128((const __m128i *)(const void *)(y + c));    \
      _mm_storeu_si128((__m128i *)(void *)(x + c), sum_8_##TYPE(a, b));             \
    }                                                                               \
    if (columns & 4) {                                                              \
      store(x + c, 8, sum_4_##TYPE(load(x + c, 8), load(y + c, 8)));                \
      c += 4;                                                                       \
    }                                                                               \
    if (columns & 2) {                                                              \
      store(x + c, 4, sum_4_##TYPE(load(x + c, 4), load(y + c, 4)));                \
      c += 2;                                                                       \
    }                                                                               \
    if (columns & 1) store(x + c, 2, sum_4_##TYPE(load(x + c, 2), load(y + c, 2))); \
  }                                                                                 \
  TS_SCATTER_DEFINE_HALF(add_##TYPE, add_row_##TYPE)
DEFINE_ADD(bf16)
DEFINE_ADD(f16)

const ts_scatter_halves ISA(ts_scatter_halves) = {add_f16, add_bf16};

#include "kernel/isa_end.h"
#endif
