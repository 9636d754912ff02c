#if defined(__x86_64__)
#include "kernel/inline.h"
#include "kernel/isa_avx2.h"

#include "kernel/conv/window_vectors.h"

INLINE float fma_f32(float a, float b, float c) { return __builtin_fmaf(a, b, c); }
INLINE double fma_f64(double a, double b, double c) { return __builtin_fma(a, b, c); }
INLINE floats fma_vector_f32(floats a, floats b, floats c) {
  return (floats)_mm256_fmadd_ps((__m256)a, (__m256)b, (__m256)c);
}
INLINE doubles fma_vector_f64(doubles a, doubles b, doubles c) {
  return (doubles)_mm256_fmadd_pd((__m256d)a, (__m256d)b, (__m256d)c);
}

/* The instruction gives its second operand for two zeros and for NaN. The bits of equal numbers are right from either
 * side; the first NaN stays. */
INLINE __m256 first_nan_f32(__m256 a, __m256 best) {
  return _mm256_blendv_ps(best, a, _mm256_cmp_ps(a, a, _CMP_UNORD_Q));
}
INLINE __m256d first_nan_f64(__m256d a, __m256d best) {
  return _mm256_blendv_pd(best, a, _mm256_cmp_pd(a, a, _CMP_UNORD_Q));
}
INLINE floats max_f32(floats x, floats y) {
  __m256 a = (__m256)x, b = (__m256)y, unequal = _mm256_cmp_ps(a, b, _CMP_NEQ_UQ);
  return (floats)first_nan_f32(a, _mm256_and_ps(_mm256_max_ps(a, b), _mm256_or_ps(a, unequal)));
}
INLINE floats min_f32(floats x, floats y) {
  __m256 a = (__m256)x, b = (__m256)y, equal = _mm256_cmp_ps(a, b, _CMP_EQ_OQ);
  return (floats)first_nan_f32(a, _mm256_or_ps(_mm256_min_ps(a, b), _mm256_and_ps(a, equal)));
}
INLINE doubles max_f64(doubles x, doubles y) {
  __m256d a = (__m256d)x, b = (__m256d)y, unequal = _mm256_cmp_pd(a, b, _CMP_NEQ_UQ);
  return (doubles)first_nan_f64(a, _mm256_and_pd(_mm256_max_pd(a, b), _mm256_or_pd(a, unequal)));
}
INLINE doubles min_f64(doubles x, doubles y) {
  __m256d a = (__m256d)x, b = (__m256d)y, equal = _mm256_cmp_pd(a, b, _CMP_EQ_OQ);
  return (doubles)first_nan_f64(a, _mm256_or_pd(_mm256_min_pd(a, b), _mm256_and_pd(a, equal)));
}

INLINE void stream(void *to, floats x) { _mm256_stream_si256((__m256i *)to, (__m256i)x); }
INLINE void stream_end(void) { _mm_sfence(); }
INLINE floats in_register(floats x) { return x; }

#include "kernel/conv/window_body.h"

#include "kernel/isa_end.h"

#else
typedef int ts_window_avx2_is_empty;
#endif
