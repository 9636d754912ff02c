#include "kernel/inline.h"
#include "kernel/pick.h"

#if defined(__x86_64__)
#include "kernel/isa_avx512.h"

#define LANES32 16
#define LANES64 8
#define SOME32 some32
#define SOME64 some64

/* The vector is compressed in a register, since compressing stores are slow on some machines; into a copy of it, since
 * others wait for the destination even when the other lanes are to be cleared (sort_lanes_avx512.c). */
INLINE int64_t some32(const uint32_t *x, int64_t i, uint32_t first, uint32_t span, uint32_t *values,
                      uint32_t *indices) {
  const __m512i numbers = _mm512_set_epi32(15, 14, 13, 12, 11, 10, 9, 8, 7, 6, 5, 4, 3, 2, 1, 0);
  const __m512i v = _mm512_loadu_si512(x), from = _mm512_sub_epi32(v, _mm512_set1_epi32((int)first));
  const __mmask16 in = _mm512_cmple_epu32_mask(from, _mm512_set1_epi32((int)span));
  const int lanes = mask_lanes(in);
  if (!lanes) return 0;
  const __m512i at = _mm512_add_epi32(numbers, _mm512_set1_epi32((int)i));
  _mm512_storeu_si512(values, _mm512_mask_compress_epi32(v, in, v));
  _mm512_storeu_si512(indices, _mm512_mask_compress_epi32(at, in, at));
  return lanes;
}

INLINE int64_t some64(const uint64_t *x, int64_t i, uint64_t first, uint64_t span, uint64_t *values,
                      uint32_t *indices) {
  const __m256i numbers = _mm256_set_epi32(7, 6, 5, 4, 3, 2, 1, 0);
  const __m512i v = _mm512_loadu_si512(x), from = _mm512_sub_epi64(v, _mm512_set1_epi64((int64_t)first));
  const __mmask8 in = _mm512_cmple_epu64_mask(from, _mm512_set1_epi64((int64_t)span));
  const int lanes = mask_lanes(in);
  if (!lanes) return 0;
  const __m256i at = _mm256_add_epi32(numbers, _mm256_set1_epi32((int)i));
  _mm512_storeu_si512(values, _mm512_mask_compress_epi64(v, in, v));
  _mm256_storeu_si256((__m256i *)indices, _mm256_mask_compress_epi32(at, in, at));
  return lanes;
}
#include "kernel/pick_body.h"

#include "kernel/isa_end.h"

#endif
