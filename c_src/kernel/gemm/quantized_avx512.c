#include "kernel/gemm/quantized.h"

#if defined(__x86_64__)
#include "kernel/isa_avx512.h"

#define FMA(a, b, c) ((vf)_mm512_fmadd_ps((__m512)(a), (__m512)(b), (__m512)(c)))
#include "kernel/gemm/quantized_body.h"

#include "kernel/isa_end.h"
#endif
