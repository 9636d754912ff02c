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

PICK_BY(s8, __m256i, _mm256_max_epi8, _mm256_min_epi8)
PICK_BY(u8, __m256i, _mm256_max_epu8, _mm256_min_epu8)
PICK_BY(s16, __m256i, _mm256_max_epi16, _mm256_min_epi16)
PICK_BY(u16, __m256i, _mm256_max_epu16, _mm256_min_epu16)
PICK_BY(s32, __m256i, _mm256_max_epi32, _mm256_min_epi32)
PICK_BY(u32, __m256i, _mm256_max_epu32, _mm256_min_epu32)
PICK_BY_MASK(s64)
PICK_BY_MASK(u64)
PICK_BY(f32, __m256, _mm256_max_ps, _mm256_min_ps)
PICK_BY(f64, __m256d, _mm256_max_pd, _mm256_min_pd)
INLINE floats once(floats x) {
  __asm__("" : "+x"(x));
  return x;
}
INLINE bool any_set(vector_u16 x) { return _mm256_movemask_epi8((__m256i)x) != 0; }
INLINE bool any_nan_f32(floats a, floats b) {
  return _mm256_movemask_ps(_mm256_cmp_ps((__m256)a, (__m256)b, _CMP_UNORD_Q)) != 0;
}
INLINE bool any_nan_f64(doubles a, doubles b) {
  return _mm256_movemask_pd(_mm256_cmp_pd((__m256d)a, (__m256d)b, _CMP_UNORD_Q)) != 0;
}

INLINE void stream(void *to, floats x) { _mm256_stream_si256((__m256i *)to, (__m256i)x); }
INLINE void stream_end(void) { _mm_sfence(); }
INLINE floats in_register(floats x) { return x; }

#include "kernel/conv/window_few.h"

INLINE __m256i lanes(void) { return _mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7); }
INLINE __m256i first_of(int64_t n) { return _mm256_cmpgt_epi32(_mm256_set1_epi32((int)n), lanes()); }
INLINE ints load_some(const void *p, int64_t n) {
  return (ints)(n == FLOATS ? _mm256_loadu_si256(p) : _mm256_maskload_epi32(p, first_of(n)));
}
INLINE ints gather_some(const void *p, int64_t stride, int64_t n) {
  const __m256i at = _mm256_mullo_epi32(lanes(), _mm256_set1_epi32((int)stride));
  return (ints)_mm256_mask_i32gather_epi32(_mm256_setzero_si256(), p, at, first_of(n), 4);
}
INLINE void store_some(void *p, ints x, int64_t n) {
  if (n == FLOATS)
    _mm256_storeu_si256(p, (__m256i)x);
  else
    store_few(p, (__m256i)x, n);
}

#include "kernel/conv/window_body.h"

#include "kernel/isa_end.h"

#else
typedef int ts_window_avx2_is_empty;
#endif
