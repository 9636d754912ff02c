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

PICK_BY(s8, __m512i, _mm512_max_epi8, _mm512_min_epi8)
PICK_BY(u8, __m512i, _mm512_max_epu8, _mm512_min_epu8)
PICK_BY(s16, __m512i, _mm512_max_epi16, _mm512_min_epi16)
PICK_BY(u16, __m512i, _mm512_max_epu16, _mm512_min_epu16)
PICK_BY(s32, __m512i, _mm512_max_epi32, _mm512_min_epi32)
PICK_BY(u32, __m512i, _mm512_max_epu32, _mm512_min_epu32)
PICK_BY(s64, __m512i, _mm512_max_epi64, _mm512_min_epi64)
PICK_BY(u64, __m512i, _mm512_max_epu64, _mm512_min_epu64)
PICK_BY(f32, __m512, _mm512_max_ps, _mm512_min_ps)
PICK_BY(f64, __m512d, _mm512_max_pd, _mm512_min_pd)
INLINE floats once(floats x) {
  __asm__("" : "+v"(x));
  return x;
}
INLINE bool any_set(vector_u16 x) { return _mm512_test_epi16_mask((__m512i)x, (__m512i)x) != 0; }
INLINE bool any_nan_f32(floats a, floats b) { return _mm512_cmp_ps_mask((__m512)a, (__m512)b, _CMP_UNORD_Q) != 0; }
INLINE bool any_nan_f64(doubles a, doubles b) { return _mm512_cmp_pd_mask((__m512d)a, (__m512d)b, _CMP_UNORD_Q) != 0; }

INLINE void stream(void *to, floats x) { _mm512_stream_si512((__m512i *)to, (__m512i)x); }
INLINE void stream_end(void) { _mm_sfence(); }
/* Else the compiler has each of three FMAs load the element again, which took a fifth longer for lines in L2. */
INLINE floats in_register(floats x) {
  __asm__("" : "+v"(x));
  return x;
}

#include "kernel/conv/window_few.h"

INLINE __mmask16 first_of(int64_t n) { return (__mmask16)((1U << n) - 1); }
INLINE ints load_some(const void *p, int64_t n) {
  return (ints)(n == FLOATS ? _mm512_loadu_si512(p) : _mm512_maskz_loadu_epi32(first_of(n), p));
}
INLINE ints gather_some(const void *p, int64_t stride, int64_t n) {
  const __m512i lanes = _mm512_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15);
  const __m512i at = _mm512_mullo_epi32(lanes, _mm512_set1_epi32((int)stride));
  return (ints)_mm512_mask_i32gather_epi32(_mm512_setzero_si512(), first_of(n), at, p, 4);
}
/* By pieces, as a load near a store with a mask waits for that store. */
INLINE void store_some(void *p, ints x, int64_t n) {
  __m256i some = _mm512_castsi512_si256((__m512i)x);
  char *to = p;
  if (n == FLOATS) {
    _mm512_storeu_si512(p, (__m512i)x);
    return;
  }
  if (n & 8) {
    _mm256_storeu_si256((__m256i *)(void *)to, some);
    some = _mm512_extracti64x4_epi64((__m512i)x, 1);
    to += 32;
  }
  store_few(to, some, n & 7);
}

#include "kernel/conv/window_body.h"

#include "kernel/isa_end.h"

#else
typedef int ts_window_avx512_is_empty;
#endif
