#include "kernel/linalg_vector.h"

#if defined(__x86_64__)
#include <math.h>

#include "kernel/isa_avx512.h"

#define FMA32(a, b, c) _mm512_fmadd_ps(a, b, c)
#define FMA64(a, b, c) _mm512_fmadd_pd(a, b, c)
#define SPLAT32(x) _mm512_set1_ps(x)
#define SPLAT64(x) _mm512_set1_pd(x)
#define SQRT32(x) _mm512_sqrt_ps(x)
#define SQRT64(x) _mm512_sqrt_pd(x)
#include "kernel/linalg_vector_body.h"

#include "kernel/isa_end.h"

#endif
