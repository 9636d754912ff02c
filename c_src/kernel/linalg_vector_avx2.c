#include "kernel/linalg_vector.h"

#if defined(__x86_64__)
#include <immintrin.h>
#include <math.h>

#if defined(__clang__)
#pragma clang attribute push(__attribute__((target("avx2,fma"))), apply_to = function)
#else
#pragma GCC push_options
#pragma GCC target("avx2,fma")
#endif

#define VECTOR_BYTES 32
#define ISA(name) name##_avx2
#define FMA32(a, b, c) _mm256_fmadd_ps(a, b, c)
#define FMA64(a, b, c) _mm256_fmadd_pd(a, b, c)
#define SPLAT32(x) _mm256_set1_ps(x)
#define SPLAT64(x) _mm256_set1_pd(x)
#define SQRT32(x) _mm256_sqrt_ps(x)
#define SQRT64(x) _mm256_sqrt_pd(x)
#include "kernel/linalg_vector_body.h"

#if defined(__clang__)
#pragma clang attribute pop
#else
#pragma GCC pop_options
#endif

#endif
