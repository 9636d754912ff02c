#include "kernel/fft/fft_vector.h"

#if defined(__x86_64__)
#include "kernel/isa_avx512.h"

#define FMA32(a, b, c) _mm512_fmadd_ps(a, b, c)
#define FMA64(a, b, c) _mm512_fmadd_pd(a, b, c)

#include "kernel/fft/fft_vector_body.h"

#include "kernel/isa_end.h"

#endif
