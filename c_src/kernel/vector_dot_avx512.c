#include "kernel/vector_dot.h"

#if defined(__x86_64__)
#include "kernel/isa_avx512.h"

#define FMA32(a, b, c) _mm512_fmadd_ps(a, b, c)
#define FMA64(a, b, c) _mm512_fmadd_pd(a, b, c)
#define MADD32(a, b, c) __builtin_fmaf(a, b, c)
#define MADD64(a, b, c) __builtin_fma(a, b, c)
#include "kernel/vector_dot_body.h"

#include "kernel/isa_end.h"

#endif
