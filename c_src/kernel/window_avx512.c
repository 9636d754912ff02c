#if defined(__x86_64__)
#include "kernel/isa_avx512.h"

#define FMA_32(a, b, c) ((floats)_mm512_fmadd_ps((__m512)(a), (__m512)(b), (__m512)(c)))
#define FMA_64(a, b, c) ((doubles)_mm512_fmadd_pd((__m512d)(a), (__m512d)(b), (__m512d)(c)))
#define ONE_FMA_32(a, b, c) __builtin_fmaf(a, b, c)
#define ONE_FMA_64(a, b, c) __builtin_fma(a, b, c)
#define STREAM(p, v) _mm512_stream_si512((__m512i *)(void *)(p), (__m512i)(v))
#define STREAM_END _mm_sfence
#include "kernel/window_body.h"

#include "kernel/isa_end.h"

#else
typedef int ts_window_avx512_is_empty;
#endif
