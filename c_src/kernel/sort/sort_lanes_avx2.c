#include "kernel/sort/sort_lanes.h"

#if defined(__x86_64__)
#include "kernel/isa_avx2.h"

#define NS_32 0.36f
#define NS_64 0.7f
#define NS_PAIR 1.2f
#define MIN32(a, b) (lanes32) _mm256_min_epu32((__m256i)(a), (__m256i)(b))
#define MAX32(a, b) (lanes32) _mm256_max_epu32((__m256i)(a), (__m256i)(b))
/* Comparisons of 64 bits are signed, so the network has keys with the other sign bit. */
#define TO_LANE64(key) ((key) ^ (UINT64_C(1) << 63))
#define BIASED(a) _mm256_xor_si256((__m256i)(a), _mm256_set1_epi64x(INT64_MIN))
#define MORE64(a, b) _mm256_cmpgt_epi64(BIASED(a), BIASED(b))
#define SELECT64(m, a, b) (lanes64) _mm256_blendv_epi8((__m256i)(b), (__m256i)(a), m)
#define MIN64(a, b) SELECT64(_mm256_cmpgt_epi64((__m256i)(a), (__m256i)(b)), b, a)
#define MAX64(a, b) SELECT64(_mm256_cmpgt_epi64((__m256i)(a), (__m256i)(b)), a, b)
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

/* Of a mask of 8 lanes, a byte for each place of a vector: the lane that belongs there when those of the mask come
 * first, in order, then the others. */
#define RANK(m, lane) __builtin_popcount((m) & ((1 << (lane)) - 1))
#define PLACE(m, lane) ((m) >> (lane)&1 ? RANK(m, lane) : __builtin_popcount(m) + (lane)-RANK(m, lane))
#define AT(m, lane) (UINT64_C(lane) << 8 * (PLACE(m, lane)))
#define ORDER(m) (AT(m, 0) | AT(m, 1) | AT(m, 2) | AT(m, 3) | AT(m, 4) | AT(m, 5) | AT(m, 6) | AT(m, 7))
#define ORDER4(m) ORDER(m), ORDER((m) + 1), ORDER((m) + 2), ORDER((m) + 3)
#define ORDER16(m) ORDER4(m), ORDER4((m) + 4), ORDER4((m) + 8), ORDER4((m) + 12)
#define ORDER64(m) ORDER16(m), ORDER16((m) + 16), ORDER16((m) + 32), ORDER16((m) + 48)
static const uint64_t orders[256] = {ORDER64(0), ORDER64(64), ORDER64(128), ORDER64(192)};
/* The same for the halves of four lanes of 64 bits. */
#define TWICE(m) (((m)&1 ? 3 : 0) | ((m)&2 ? 12 : 0) | ((m)&4 ? 48 : 0) | ((m)&8 ? 192 : 0))
#define WIDE4(m) ORDER(TWICE(m)), ORDER(TWICE((m) + 1)), ORDER(TWICE((m) + 2)), ORDER(TWICE((m) + 3))
static const uint64_t wide_orders[16] = {WIDE4(0), WIDE4(4), WIDE4(8), WIDE4(12)};

static inline __attribute__((always_inline)) __m256i in_order(uint64_t order, __m256i x) {
  return _mm256_permutevar8x32_epi32(x, _mm256_cvtepu8_epi32(_mm_cvtsi64_si128((int64_t)order)));
}
/* The masks below are of the first lanes. */
static inline __attribute__((always_inline)) __m256i first32(unsigned m) {
  return _mm256_cmpgt_epi32(_mm256_set1_epi32(__builtin_popcount(m)), _mm256_set_epi32(7, 6, 5, 4, 3, 2, 1, 0));
}
static inline __attribute__((always_inline)) __m256i first64(unsigned m) {
  return _mm256_cmpgt_epi64(_mm256_set1_epi64x(__builtin_popcount(m)), _mm256_set_epi64x(3, 2, 1, 0));
}
static inline __attribute__((always_inline)) void store32(void *to, unsigned m, __m256i x) {
  if (m == 255)
    _mm256_storeu_si256(to, x);
  else
    _mm256_maskstore_epi32(to, first32(m), x);
}
static inline __attribute__((always_inline)) void store64(void *to, unsigned m, __m256i x) {
  if (m == 15)
    _mm256_storeu_si256(to, x);
  else
    _mm256_maskstore_epi64(to, first64(m), x);
}
#define mask_lanes(m) __builtin_popcount(m)
#define BIASED32(a) _mm256_xor_si256((__m256i)(a), _mm256_set1_epi32(INT32_MIN))

#define HAS_SPLIT
#define NS_PARTS32 2.4f
#define NS_PARTS64 5.4f
#define LESS32(a, b) (unsigned)_mm256_movemask_ps(_mm256_castsi256_ps(_mm256_cmpgt_epi32(BIASED32(b), BIASED32(a))))
#define LESS64(a, b) (unsigned)_mm256_movemask_pd(_mm256_castsi256_pd(MORE64(b, a)))
#define COMPRESS32(m, a) (lanes32) in_order(orders[m], (__m256i)(a))
#define COMPRESS64(m, a) (lanes64) in_order(wide_orders[m], (__m256i)(a))
#define APART32(m, a, low, high) low = high = COMPRESS32(m, a)
#define APART64(m, a, low, high) low = high = COMPRESS64(m, a)
#define LOAD32(from, m) (lanes32) _mm256_maskload_epi32((const int *)(from), first32(m))
#define LOAD64(from, m) (lanes64) _mm256_maskload_epi64((const long long *)(from), first64(m))
#define STORE32(to, m, a) store32(to, m, (__m256i)(a))
#define STORE64(to, m, a) store64(to, m, (__m256i)(a))
#define SORT_TILE32 sort8_32
#define SORT_TILE64 sort4_64
#include "kernel/sort/sort_lanes_body.h"

#include "kernel/isa_end.h"

#endif
