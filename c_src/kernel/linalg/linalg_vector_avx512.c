#include "kernel/linalg/linalg_vector.h"

#if defined(__x86_64__)
#include <math.h>

#include "kernel/isa_avx512.h"

#define FMA32(a, b, c) _mm512_fmadd_ps(a, b, c)
#define FMA64(a, b, c) _mm512_fmadd_pd(a, b, c)
#define SPLAT32(x) _mm512_set1_ps(x)
#define SPLAT64(x) _mm512_set1_pd(x)
#define SQRT32(x) _mm512_sqrt_ps(x)
#define SQRT64(x) _mm512_sqrt_pd(x)
#define LOAD_SOME32(p, n) _mm512_maskz_loadu_ps((__mmask16)(0xffffU >> (16 - (n))), p)
#define LOAD_SOME64(p, n) _mm512_maskz_loadu_pd((__mmask8)(0xffU >> (8 - (n))), p)
#define STORE_SOME32(p, n, x) _mm512_mask_storeu_ps(p, (__mmask16)(0xffffU >> (16 - (n))), x)
#define STORE_SOME64(p, n, x) _mm512_mask_storeu_pd(p, (__mmask8)(0xffU >> (8 - (n))), x)
#include "kernel/linalg/linalg_vector_body.h"

#include "kernel/isa_end.h"

#endif
