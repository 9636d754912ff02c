/* The code of fft_vector.h for one instruction set: VECTOR_BYTES, ISA for names, and FMA32 and FMA64 of vectors. */
#include "kernel/fft/fft_vector.h"
#include "kernel/inline.h"

#include <string.h>

typedef float ISA(fft_f32) __attribute__((vector_size(VECTOR_BYTES)));
typedef double ISA(fft_f64) __attribute__((vector_size(VECTOR_BYTES)));

/* A vector's units of 16 bytes, each `step` bytes after the one before. Wider vectors are put together from units,
 * since shuffles across units are few each cycle, and loads and stores are many. */
typedef char ISA(fft_raw) __attribute__((vector_size(VECTOR_BYTES)));

INLINE ISA(fft_raw) ISA(load_units)(const void *from, int64_t step) {
  const char *units = from;
#if VECTOR_BYTES == 64
  __m512 x = _mm512_castps128_ps512(_mm_loadu_ps((const float *)units));
  x = _mm512_insertf32x4(x, _mm_loadu_ps((const float *)(units + step)), 1);
  x = _mm512_insertf32x4(x, _mm_loadu_ps((const float *)(units + 2 * step)), 2);
  return (ISA(fft_raw))_mm512_insertf32x4(x, _mm_loadu_ps((const float *)(units + 3 * step)), 3);
#elif VECTOR_BYTES == 32
  __m256 x = _mm256_castps128_ps256(_mm_loadu_ps((const float *)units));
  return (ISA(fft_raw))_mm256_insertf128_ps(x, _mm_loadu_ps((const float *)(units + step)), 1);
#else
  ISA(fft_raw) x;
  memcpy(&x, units + 0 * step, sizeof x);
  return x;
#endif
}

INLINE void ISA(store_units)(void *to, int64_t step, ISA(fft_raw) x) {
  char *units = to;
#if VECTOR_BYTES == 64
  _mm_storeu_ps((float *)units, _mm512_castps512_ps128((__m512)x));
  _mm_storeu_ps((float *)(units + step), _mm512_extractf32x4_ps((__m512)x, 1));
  _mm_storeu_ps((float *)(units + 2 * step), _mm512_extractf32x4_ps((__m512)x, 2));
  _mm_storeu_ps((float *)(units + 3 * step), _mm512_extractf32x4_ps((__m512)x, 3));
#elif VECTOR_BYTES == 32
  _mm_storeu_ps((float *)units, _mm256_castps256_ps128((__m256)x));
  _mm_storeu_ps((float *)(units + step), _mm256_extractf128_ps((__m256)x, 1));
#else
  memcpy(units + 0 * step, &x, sizeof x);
#endif
}

/* Units and their neighbours: x[0] has the first of each pair, x[1] the second. */
INLINE void ISA(load_pairs)(const void *from, int64_t step, ISA(fft_raw) * x) {
#if VECTOR_BYTES == 64
  const double *at = from;
  step /= 8;
  __m512d low = _mm512_insertf64x4(_mm512_castpd256_pd512(_mm256_loadu_pd(at)), _mm256_loadu_pd(at + step), 1);
  __m512d high = _mm512_castpd256_pd512(_mm256_loadu_pd(at + 2 * step));
  high = _mm512_insertf64x4(high, _mm256_loadu_pd(at + 3 * step), 1);
  x[0] = (ISA(fft_raw))_mm512_shuffle_f64x2(low, high, 0x88);
  x[1] = (ISA(fft_raw))_mm512_shuffle_f64x2(low, high, 0xdd);
#else
  x[0] = ISA(load_units)(from, step);
  x[1] = ISA(load_units)((const char *)from + 16, step);
#endif
}

INLINE void ISA(store_pairs)(void *to, int64_t step, const ISA(fft_raw) * x) {
  char *pairs = to;
#if VECTOR_BYTES == 64
  const __m512i first = _mm512_setr_epi64(0, 1, 8, 9, 2, 3, 10, 11),
                second = _mm512_setr_epi64(4, 5, 12, 13, 6, 7, 14, 15);
  const __m512d low = _mm512_permutex2var_pd((__m512d)x[0], first, (__m512d)x[1]);
  const __m512d high = _mm512_permutex2var_pd((__m512d)x[0], second, (__m512d)x[1]);
  _mm256_storeu_pd((double *)pairs, _mm512_castpd512_pd256(low));
  _mm256_storeu_pd((double *)(pairs + step), _mm512_extractf64x4_pd(low, 1));
  _mm256_storeu_pd((double *)(pairs + 2 * step), _mm512_castpd512_pd256(high));
  _mm256_storeu_pd((double *)(pairs + 3 * step), _mm512_extractf64x4_pd(high, 1));
#elif VECTOR_BYTES == 32
  _mm256_storeu_ps((float *)pairs, _mm256_permute2f128_ps((__m256)x[0], (__m256)x[1], 0x20));
  _mm256_storeu_ps((float *)(pairs + step), _mm256_permute2f128_ps((__m256)x[0], (__m256)x[1], 0x31));
#else
  memcpy(pairs + 0 * step, x, 2 * sizeof *x);
#endif
}

#if VECTOR_BYTES == 64
/* The same for four neighbours: whole cache lines. */
INLINE void ISA(store_fours)(void *to, int64_t step, const ISA(fft_raw) * x) {
  char *fours = to;
  const __m512d a = _mm512_shuffle_f64x2((__m512d)x[0], (__m512d)x[1], 0x44);
  const __m512d b = _mm512_shuffle_f64x2((__m512d)x[2], (__m512d)x[3], 0x44);
  const __m512d c = _mm512_shuffle_f64x2((__m512d)x[0], (__m512d)x[1], 0xee);
  const __m512d d = _mm512_shuffle_f64x2((__m512d)x[2], (__m512d)x[3], 0xee);
  _mm512_storeu_pd((double *)fours, _mm512_shuffle_f64x2(a, b, 0x88));
  _mm512_storeu_pd((double *)(fours + step), _mm512_shuffle_f64x2(a, b, 0xdd));
  _mm512_storeu_pd((double *)(fours + 2 * step), _mm512_shuffle_f64x2(c, d, 0x88));
  _mm512_storeu_pd((double *)(fours + 3 * step), _mm512_shuffle_f64x2(c, d, 0xdd));
}
#endif

#define T float
#define FMA FMA32
#define V ISA(fft_f32)
#define NAME(name) ISA(name##_f32)
#define LANES (VECTOR_BYTES / 4)
#define COLUMNS TS_FFT_F32_COLUMNS
#include "kernel/fft/fft_vector_type.h"

#define T double
#define FMA FMA64
#define V ISA(fft_f64)
#define NAME(name) ISA(name##_f64)
#define LANES (VECTOR_BYTES / 8)
#define COLUMNS TS_FFT_F64_COLUMNS
#include "kernel/fft/fft_vector_type.h"

#define ROW(NAME)                                                                                        \
  {                                                                                                      \
    NAME(pass), NAME(transpose_rows), NAME(split), NAME(join), NAME(multiply), NAME(unfold), NAME(fold), \
        NAME(load_lines), NAME(store_lines), NAME(unfold_rows), NAME(fold_rows)                          \
  }
#define F32(name) ISA(name##_f32)
#define F64(name) ISA(name##_f64)
const ts_fft_vector ISA(ts_fft_vector)[2] = {ROW(F32), ROW(F64)};
