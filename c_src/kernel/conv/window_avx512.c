#if defined(__x86_64__)
#include "kernel/isa_avx512.h"

#define FMA_32(a, b, c) ((floats)_mm512_fmadd_ps((__m512)(a), (__m512)(b), (__m512)(c)))
#define FMA_64(a, b, c) ((doubles)_mm512_fmadd_pd((__m512d)(a), (__m512d)(b), (__m512d)(c)))
#define ONE_FMA_32(a, b, c) __builtin_fmaf(a, b, c)
#define ONE_FMA_64(a, b, c) __builtin_fma(a, b, c)
/* The instruction gives its second operand for two zeros and for NaN. The bits of equal numbers are right from either
 * side; the first NaN stays. */
#define DEFINE_BEST(NAME, T, END, EQUAL)                                                          \
  static inline __attribute__((always_inline)) T NAME##_##END(T a, T b) {                         \
    T best = _mm512_##NAME##_##END(a, b);                                                         \
    best = _mm512_mask_##EQUAL##_##END(best, _mm512_cmp_##END##_mask(a, b, _CMP_EQ_OQ), best, a); \
    return _mm512_mask_mov_##END(best, _mm512_cmp_##END##_mask(a, a, _CMP_UNORD_Q), a);           \
  }
DEFINE_BEST(max, __m512, ps, and)
DEFINE_BEST(min, __m512, ps, or)
DEFINE_BEST(max, __m512d, pd, and)
DEFINE_BEST(min, __m512d, pd, or)
#define MAX_32(A, M, a, b) ((A)max_ps((__m512)(a), (__m512)(b)))
#define MIN_32(A, M, a, b) ((A)min_ps((__m512)(a), (__m512)(b)))
#define MAX_64(A, M, a, b) ((A)max_pd((__m512d)(a), (__m512d)(b)))
#define MIN_64(A, M, a, b) ((A)min_pd((__m512d)(a), (__m512d)(b)))
#define STREAM(p, v) _mm512_stream_si512((__m512i *)(void *)(p), (__m512i)(v))
#define STREAM_END _mm_sfence
/* Else the compiler has each of three FMAs load the element again, which took a fifth longer for lines in L2. */
#define IN_REGISTER(x) __asm__("" : "+v"(x))
#include "kernel/conv/window_body.h"

#include "kernel/isa_end.h"

#else
typedef int ts_window_avx512_is_empty;
#endif
