#include "kernel/sort/sort_lanes.h"

#if defined(__x86_64__)
#include "kernel/isa_avx2.h"

#define NS_32 0.36f
#define NS_64 0.7f
#define NS_PAIR 1.2f
#define MIN32(a, b) (lanes32) _mm256_min_epu32((__m256i)(a), (__m256i)(b))
#define MAX32(a, b) (lanes32) _mm256_max_epu32((__m256i)(a), (__m256i)(b))
/* Comparisons of 64 bits are signed. */
#define BIASED(a) _mm256_xor_si256((__m256i)(a), _mm256_set1_epi64x(INT64_MIN))
#define MORE64(a, b) _mm256_cmpgt_epi64(BIASED(a), BIASED(b))
#define SELECT64(m, a, b) (lanes64) _mm256_blendv_epi8((__m256i)(b), (__m256i)(a), m)
#define MIN64(a, b) SELECT64(MORE64(a, b), b, a)
#define MAX64(a, b) SELECT64(MORE64(a, b), a, b)
/* Indices have no sign bit. */
#define EXCHANGE_PAIR(a, b)                                                      \
  do {                                                                           \
    lanes64 ak = (a)->key, bk = (b)->key, ai = (a)->index, bi = (b)->index;      \
    __m256i more = _mm256_cmpgt_epi64((__m256i)ai, (__m256i)bi);                 \
    more = _mm256_and_si256(more, _mm256_cmpeq_epi64((__m256i)ak, (__m256i)bk)); \
    more = _mm256_or_si256(more, MORE64(ak, bk));                                \
    (a)->key = SELECT64(more, bk, ak), (b)->key = SELECT64(more, ak, bk);        \
    (a)->index = SELECT64(more, bi, ai), (b)->index = SELECT64(more, ai, bi);    \
  } while (0)
#include "kernel/sort/sort_lanes_body.h"

#include "kernel/isa_end.h"

#endif
