#include "kernel/gemm/complex/complex_vector.h"

#if defined(__x86_64__)
#include "kernel/isa_avx2.h"

#define VECTOR32 __m256
#define VECTOR64 __m256d
#define FMA32(a, b, c) _mm256_fmadd_ps(a, b, c)
#define FMA64(a, b, c) _mm256_fmadd_pd(a, b, c)
#define MADD32(a, b, c) __builtin_fmaf(a, b, c)
#define MADD64(a, b, c) __builtin_fma(a, b, c)
#define EVEN32(x) _mm256_moveldup_ps(x)
#define EVEN64(x) _mm256_movedup_pd(x)
#define ODD32(x) _mm256_movehdup_ps(x)
#define ODD64(x) _mm256_permute_pd(x, 0xF)
#define SWAP32(x) _mm256_permute_ps(x, 0xB1)
#define SWAP64(x) _mm256_permute_pd(x, 0x5)
#define SPREAD32(a) _mm256_set1_ps(a)
#define SPREAD64(a) _mm256_set1_pd(a)
#define PAIR32(at) _mm256_castpd_ps(_mm256_set1_pd(*(const unaligned_f64 *)(const void *)(at)))
#define PAIR64(at) _mm256_broadcast_pd((const __m128d *)(const void *)(at))
#define NEGATE_EVEN32(x) _mm256_xor_ps(x, _mm256_castsi256_ps(_mm256_set1_epi64x(INT64_C(1) << 31)))
#define NEGATE_EVEN64(x) _mm256_xor_pd(x, _mm256_castsi256_pd(_mm256_set_epi64x(0, INT64_MIN, 0, INT64_MIN)))
typedef double unaligned_f64 __attribute__((aligned(4), may_alias));

/* `count` may be below 0. */
static inline __m256i first_lanes(int64_t count) {
  static const int32_t lanes[] = {-1, -1, -1, -1, -1, -1, -1, -1, 0, 0, 0, 0, 0, 0, 0, 0};
  return _mm256_loadu_si256((const __m256i *)(const void *)(lanes + 8 - (count > 8 ? 8 : count < 0 ? 0 : count)));
}
#define LOAD_SOME32(at, count) _mm256_maskload_ps(at, first_lanes(count))
#define LOAD_SOME64(at, count) _mm256_maskload_pd(at, first_lanes(2 * (count)))

static inline __attribute__((always_inline)) void turn_wide(__m256d *v, int step) {
  const __m256d a = v[0], b = v[step];
  v[0] = _mm256_permute2f128_pd(a, b, 0x20);
  v[step] = _mm256_permute2f128_pd(a, b, 0x31);
}

static inline __attribute__((always_inline)) void turn_f64(__m256d *v) { turn_wide(v, 1); }

static inline __attribute__((always_inline)) void turn_f32(__m256 *v) {
  __m256d x[4];
  UNROLL for (int i = 0; i < 4; i += 2) {
    const __m256d a = _mm256_castps_pd(v[i]), b = _mm256_castps_pd(v[i + 1]);
    x[i] = _mm256_unpacklo_pd(a, b);
    x[i + 1] = _mm256_unpackhi_pd(a, b);
  }
  turn_wide(x, 2);
  turn_wide(x + 1, 2);
  UNROLL for (int i = 0; i < 4; i++) v[i] = _mm256_castpd_ps(x[i]);
}
#include "kernel/gemm/complex/complex_vector_body.h"

#include "kernel/isa_end.h"
#endif
