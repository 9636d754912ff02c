#include "kernel/linalg_vector.h"

#if defined(__x86_64__)
#include <immintrin.h>
#include <math.h>

#if defined(__clang__)
#pragma clang attribute push(__attribute__((target("avx512f,avx512dq,avx512vl,fma"))), apply_to = function)
#else
#pragma GCC push_options
#pragma GCC target("avx512f,avx512dq,avx512vl,fma")
#endif

#define VECTOR_BYTES 64
#define ISA(name) name##_avx512
#define FMA32(a, b, c) _mm512_fmadd_ps(a, b, c)
#define FMA64(a, b, c) _mm512_fmadd_pd(a, b, c)
#define SPLAT32(x) _mm512_set1_ps(x)
#define SPLAT64(x) _mm512_set1_pd(x)
#define SQRT32(x) _mm512_sqrt_ps(x)
#define SQRT64(x) _mm512_sqrt_pd(x)
#include "kernel/linalg_vector_body.h"

#if defined(__clang__)
#pragma clang attribute pop
#else
#pragma GCC pop_options
#endif

#endif
