#include "kernel/linalg/linalg_vector.h"

#if defined(__x86_64__)
#include <math.h>

#include "kernel/isa_avx2.h"

#define FMA32(a, b, c) _mm256_fmadd_ps(a, b, c)
#define FMA64(a, b, c) _mm256_fmadd_pd(a, b, c)
#define SPLAT32(x) _mm256_set1_ps(x)
#define SPLAT64(x) _mm256_set1_pd(x)
#define SQRT32(x) _mm256_sqrt_ps(x)
#define SQRT64(x) _mm256_sqrt_pd(x)
#define FIRST32(n) _mm256_cmpgt_epi32(_mm256_set1_epi32((int)(n)), _mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7))
#define FIRST64(n) _mm256_cmpgt_epi64(_mm256_set1_epi64x(n), _mm256_setr_epi64x(0, 1, 2, 3))
#define LOAD_SOME32(p, n) _mm256_maskload_ps(p, FIRST32(n))
#define LOAD_SOME64(p, n) _mm256_maskload_pd(p, FIRST64(n))
#define STORE_SOME32(p, n, x) _mm256_maskstore_ps(p, FIRST32(n), x)
#define STORE_SOME64(p, n, x) _mm256_maskstore_pd(p, FIRST64(n), x)
#include "kernel/linalg/linalg_vector_body.h"

#include "kernel/isa_end.h"

#endif
