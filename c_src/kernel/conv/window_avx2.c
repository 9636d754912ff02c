#if defined(__x86_64__)
#include "kernel/isa_avx2.h"

#define FMA_32(a, b, c) ((floats)_mm256_fmadd_ps((__m256)(a), (__m256)(b), (__m256)(c)))
#define FMA_64(a, b, c) ((doubles)_mm256_fmadd_pd((__m256d)(a), (__m256d)(b), (__m256d)(c)))
#define ONE_FMA_32(a, b, c) __builtin_fmaf(a, b, c)
#define ONE_FMA_64(a, b, c) __builtin_fma(a, b, c)
/* The instruction gives its second operand for two zeros and for NaN. The bits of equal numbers are right from either
 * side; the first NaN stays. */
#define DEFINE_BEST(NAME, T, END, EQUAL)                                       \
  static inline __attribute__((always_inline)) T NAME##_##END(T a, T b) {      \
    T best = EQUAL(_mm256_##NAME##_##END(a, b), a, b, END);                    \
    return _mm256_blendv_##END(best, a, _mm256_cmp_##END(a, a, _CMP_UNORD_Q)); \
  }
#define BOTH_BITS(best, a, b, END) _mm256_and_##END(best, _mm256_or_##END(a, _mm256_cmp_##END(a, b, _CMP_NEQ_UQ)))
#define EITHER_BITS(best, a, b, END) _mm256_or_##END(best, _mm256_and_##END(a, _mm256_cmp_##END(a, b, _CMP_EQ_OQ)))
DEFINE_BEST(max, __m256, ps, BOTH_BITS)
DEFINE_BEST(min, __m256, ps, EITHER_BITS)
DEFINE_BEST(max, __m256d, pd, BOTH_BITS)
DEFINE_BEST(min, __m256d, pd, EITHER_BITS)
#define MAX_32(A, M, a, b) ((A)max_ps((__m256)(a), (__m256)(b)))
#define MIN_32(A, M, a, b) ((A)min_ps((__m256)(a), (__m256)(b)))
#define MAX_64(A, M, a, b) ((A)max_pd((__m256d)(a), (__m256d)(b)))
#define MIN_64(A, M, a, b) ((A)min_pd((__m256d)(a), (__m256d)(b)))
#define STREAM(p, v) _mm256_stream_si256((__m256i *)(void *)(p), (__m256i)(v))
#define STREAM_END _mm_sfence
#include "kernel/conv/window_body.h"

#include "kernel/isa_end.h"

#else
typedef int ts_window_avx2_is_empty;
#endif
