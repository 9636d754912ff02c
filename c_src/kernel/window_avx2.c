#if defined(__x86_64__)
#include "kernel/isa_avx2.h"

#define FMA_32(a, b, c) ((floats)_mm256_fmadd_ps((__m256)(a), (__m256)(b), (__m256)(c)))
#define FMA_64(a, b, c) ((doubles)_mm256_fmadd_pd((__m256d)(a), (__m256d)(b), (__m256d)(c)))
#define ONE_FMA_32(a, b, c) __builtin_fmaf(a, b, c)
#define ONE_FMA_64(a, b, c) __builtin_fma(a, b, c)
#define STREAM(p, v) _mm256_stream_si256((__m256i *)(void *)(p), (__m256i)(v))
#define STREAM_END _mm_sfence
#include "kernel/window_body.h"

#include "kernel/isa_end.h"

#else
typedef int ts_window_avx2_is_empty;
#endif
