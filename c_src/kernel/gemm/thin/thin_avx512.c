#include "kernel/gemm/thin/thin.h"

#if defined(__x86_64__)
#include "kernel/inline.h"
#include "kernel/isa_avx512.h"

#include <stdint.h>

INLINE __m128 piece(const char *line, int64_t at) { return _mm_loadu_ps((const float *)(const void *)(line + at)); }

INLINE __m512 join(const char *const *lines, int64_t step, int64_t at) {
  __m512 v = _mm512_castps128_ps512(piece(lines[0], at));
  v = _mm512_insertf32x4(v, piece(lines[step], at), 1);
  v = _mm512_insertf32x4(v, piece(lines[2 * step], at), 2);
  return _mm512_insertf32x4(v, piece(lines[3 * step], at), 3);
}

#define JOIN(lines, step, at) join(lines, step, at)
#define LOW32(a, b) ((V)_mm512_unpacklo_ps((__m512)(a), (__m512)(b)))
#define HIGH32(a, b) ((V)_mm512_unpackhi_ps((__m512)(a), (__m512)(b)))
#define LOW64(a, b) ((V)_mm512_unpacklo_pd((__m512d)(a), (__m512d)(b)))
#define HIGH64(a, b) ((V)_mm512_unpackhi_pd((__m512d)(a), (__m512d)(b)))
#define FMA32(a, b, c) _mm512_fmadd_ps(a, b, c)
#define FMA64(a, b, c) _mm512_fmadd_pd(a, b, c)
#include "kernel/gemm/thin/thin_body.h"

#include "kernel/isa_end.h"

#endif
