#include "kernel/sort/sort_lanes.h"

#if defined(__x86_64__)
#include "kernel/isa_avx512.h"

#define NS_32 0.5f
#define NS_64 0.45f
#define NS_PAIR 1.1f
#define MIN32(a, b) (lanes32) _mm512_min_epu32((__m512i)(a), (__m512i)(b))
#define MAX32(a, b) (lanes32) _mm512_max_epu32((__m512i)(a), (__m512i)(b))
#define MIN64(a, b) (lanes64) _mm512_min_epu64((__m512i)(a), (__m512i)(b))
#define MAX64(a, b) (lanes64) _mm512_max_epu64((__m512i)(a), (__m512i)(b))
#define SELECT64(m, a, b) (lanes64) _mm512_mask_blend_epi64(m, (__m512i)(b), (__m512i)(a))
#define EXCHANGE_PAIR(a, b)                                                                                     \
  do {                                                                                                          \
    __m512i ak = (__m512i)(a)->key, bk = (__m512i)(b)->key, ai = (__m512i)(a)->index, bi = (__m512i)(b)->index; \
    __mmask8 more = _mm512_cmpgt_epu64_mask(ak, bk);                                                            \
    more |= _mm512_mask_cmpgt_epu64_mask(_mm512_cmpeq_epi64_mask(ak, bk), ai, bi);                              \
    (a)->key = (lanes64)_mm512_min_epu64(ak, bk), (b)->key = (lanes64)_mm512_max_epu64(ak, bk);                 \
    (a)->index = SELECT64(more, bi, ai), (b)->index = SELECT64(more, ai, bi);                                   \
  } while (0)
#define HAS_SPLIT
#define NS_PARTS32 2.4f
#define NS_PARTS64 3.2f
#define LESS32(a, b) _mm512_cmplt_epu32_mask((__m512i)(a), (__m512i)(b))
#define LESS64(a, b) _mm512_cmplt_epu64_mask((__m512i)(a), (__m512i)(b))
/* In a register: compressing stores are slow on some machines. Into a copy of the vector: on Zen 5 the instruction
 * waits for its destination even when it is to clear the other lanes, so that each would wait for the one before. */
#define COMPRESS32(m, a) (lanes32) _mm512_mask_compress_epi32((__m512i)(a), (__mmask16)(m), (__m512i)(a))
#define COMPRESS64(m, a) (lanes64) _mm512_mask_compress_epi64((__m512i)(a), (__mmask8)(m), (__m512i)(a))
#define REVERSE32(a) \
  (lanes32)          \
      _mm512_permutexvar_epi32(_mm512_set_epi32(0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15), (__m512i)(a))
#define REVERSE64(a) (lanes64) _mm512_permutexvar_epi64(_mm512_set_epi64(0, 1, 2, 3, 4, 5, 6, 7), (__m512i)(a))
#define APART32(m, a, low, high) low = COMPRESS32(m, a), high = REVERSE32(COMPRESS32(~(m), a))
#define APART64(m, a, low, high) low = COMPRESS64(m, a), high = REVERSE64(COMPRESS64(~(m), a))
#define LOAD32(from, m) (lanes32) _mm512_maskz_loadu_epi32((__mmask16)(m), from)
#define LOAD64(from, m) (lanes64) _mm512_maskz_loadu_epi64((__mmask8)(m), from)
#define STORE32(to, m, a) _mm512_mask_storeu_epi32(to, (__mmask16)(m), (__m512i)(a))
#define STORE64(to, m, a) _mm512_mask_storeu_epi64(to, (__mmask8)(m), (__m512i)(a))
#define SORT_TILE32 sort16_32
#define SORT_TILE64 sort8_64
#include "kernel/sort/sort_lanes_body.h"

#include "kernel/isa_end.h"

#endif
