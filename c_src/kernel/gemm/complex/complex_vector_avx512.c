#include "kernel/gemm/complex/complex_vector.h"

#if defined(__x86_64__)
#include "kernel/isa_avx512.h"

#define VECTOR32 __m512
#define VECTOR64 __m512d
#define FMA32(a, b, c) _mm512_fmadd_ps(a, b, c)
#define FMA64(a, b, c) _mm512_fmadd_pd(a, b, c)
#define MADD32(a, b, c) __builtin_fmaf(a, b, c)
#define MADD64(a, b, c) __builtin_fma(a, b, c)
#define EVEN32(x) _mm512_moveldup_ps(x)
#define EVEN64(x) _mm512_movedup_pd(x)
#define ODD32(x) _mm512_movehdup_ps(x)
#define ODD64(x) _mm512_permute_pd(x, 0xFF)
#define SWAP32(x) _mm512_permute_ps(x, 0xB1)
#define SWAP64(x) _mm512_permute_pd(x, 0x55)
#define SPREAD32(a) _mm512_set1_ps(a)
#define SPREAD64(a) _mm512_set1_pd(a)
#define PAIR32(at) _mm512_castpd_ps(_mm512_set1_pd(*(const unaligned_f64 *)(const void *)(at)))
#define PAIR64(at) _mm512_broadcast_f64x2(_mm_loadu_pd(at))
#define NEGATE_EVEN32(x) \
  _mm512_castsi512_ps(_mm512_xor_si512(_mm512_castps_si512(x), _mm512_set1_epi64(INT64_C(1) << 31)))
#define NEGATE_EVEN64(x)                                       \
  _mm512_castsi512_pd(_mm512_xor_si512(_mm512_castpd_si512(x), \
                                       _mm512_set_epi64(0, INT64_MIN, 0, INT64_MIN, 0, INT64_MIN, 0, INT64_MIN)))
typedef double unaligned_f64 __attribute__((aligned(4), may_alias));

/* `count` may be below 0. */
static inline __mmask16 first_lanes(int64_t count) {
  return (__mmask16)(count >= 16 ? 0xFFFF : (1 << (count < 0 ? 0 : count)) - 1);
}
#define LOAD_SOME32(at, count) _mm512_maskz_loadu_ps(first_lanes(count), at)
#define LOAD_SOME64(at, count) _mm512_maskz_loadu_pd((__mmask8)first_lanes(count), at)

#define LOW(a, b) _mm512_shuffle_f64x2(a, b, 0x88)
#define HIGH(a, b) _mm512_shuffle_f64x2(a, b, 0xDD)

/* Four numbers of 16 bytes of each of four vectors, whose distance is `step`. */
static inline __attribute__((always_inline)) void turn_wide(__m512d *v, int step) {
  const __m512d a = LOW(v[0], v[step]), b = HIGH(v[0], v[step]);
  const __m512d c = LOW(v[2 * step], v[3 * step]), d = HIGH(v[2 * step], v[3 * step]);
  v[0] = LOW(a, c);
  v[step] = LOW(b, d);
  v[2 * step] = HIGH(a, c);
  v[3 * step] = HIGH(b, d);
}

static inline __attribute__((always_inline)) void turn_f64(__m512d *v) { turn_wide(v, 1); }

static inline __attribute__((always_inline)) void turn_f32(__m512 *v) {
  __m512d x[8];
  UNROLL for (int i = 0; i < 8; i += 2) {
    const __m512d a = _mm512_castps_pd(v[i]), b = _mm512_castps_pd(v[i + 1]);
    x[i] = _mm512_unpacklo_pd(a, b);
    x[i + 1] = _mm512_unpackhi_pd(a, b);
  }
  turn_wide(x, 2);
  turn_wide(x + 1, 2);
  UNROLL for (int i = 0; i < 8; i++) v[i] = _mm512_castpd_ps(x[i]);
}
#include "kernel/gemm/complex/complex_vector_body.h"

#include "kernel/isa_end.h"
#endif
