#if defined(__x86_64__)
#include "kernel/inline.h"
#include "kernel/isa_avx512.h"

#include "kernel/conv/window_vectors.h"

INLINE float fma_f32(float a, float b, float c) { return __builtin_fmaf(a, b, c); }
INLINE double fma_f64(double a, double b, double c) { return __builtin_fma(a, b, c); }
INLINE floats fma_vector_f32(floats a, floats b, floats c) {
  return (floats)_mm512_fmadd_ps((__m512)a, (__m512)b, (__m512)c);
}
INLINE doubles fma_vector_f64(doubles a, doubles b, doubles c) {
  return (doubles)_mm512_fmadd_pd((__m512d)a, (__m512d)b, (__m512d)c);
}

/* The instruction gives its second operand for two zeros and for NaN. The bits of equal numbers are right from either
 * side; the first NaN stays. */
INLINE __m512 first_nan_f32(__m512 a, __m512 best) {
  return _mm512_mask_mov_ps(best, _mm512_cmp_ps_mask(a, a, _CMP_UNORD_Q), a);
}
INLINE __m512d first_nan_f64(__m512d a, __m512d best) {
  return _mm512_mask_mov_pd(best, _mm512_cmp_pd_mask(a, a, _CMP_UNORD_Q), a);
}
INLINE floats max_f32(floats x, floats y) {
  __m512 a = (__m512)x, b = (__m512)y, best = _mm512_max_ps(a, b);
  return (floats)first_nan_f32(a, _mm512_mask_and_ps(best, _mm512_cmp_ps_mask(a, b, _CMP_EQ_OQ), best, a));
}
INLINE floats min_f32(floats x, floats y) {
  __m512 a = (__m512)x, b = (__m512)y, best = _mm512_min_ps(a, b);
  return (floats)first_nan_f32(a, _mm512_mask_or_ps(best, _mm512_cmp_ps_mask(a, b, _CMP_EQ_OQ), best, a));
}
INLINE doubles max_f64(doubles x, doubles y) {
  __m512d a = (__m512d)x, b = (__m512d)y, best = _mm512_max_pd(a, b);
  return (doubles)first_nan_f64(a, _mm512_mask_and_pd(best, _mm512_cmp_pd_mask(a, b, _CMP_EQ_OQ), best, a));
}
INLINE doubles min_f64(doubles x, doubles y) {
  __m512d a = (__m512d)x, b = (__m512d)y, best = _mm512_min_pd(a, b);
  return (doubles)first_nan_f64(a, _mm512_mask_or_pd(best, _mm512_cmp_pd_mask(a, b, _CMP_EQ_OQ), best, a));
}

INLINE void stream(void *to, floats x) { _mm512_stream_si512((__m512i *)to, (__m512i)x); }
INLINE void stream_end(void) { _mm_sfence(); }
/* Else the compiler has each of three FMAs load the element again, which took a fifth longer for lines in L2. */
INLINE floats in_register(floats x) {
  __asm__("" : "+v"(x));
  return x;
}

#include "kernel/conv/window_body.h"

#include "kernel/isa_end.h"

#else
typedef int ts_window_avx512_is_empty;
#endif
