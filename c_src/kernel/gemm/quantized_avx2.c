#include "kernel/gemm/quantized.h"

#if defined(__x86_64__)
#include "kernel/isa_avx2.h"

#define HALVES(at) ((vf)_mm256_cvtph_ps(_mm_loadu_si128((const __m128i *)(const void *)(at))))
#define WORDS(at) ((vu)_mm256_cvtepu16_epi32(_mm_loadu_si128((const __m128i *)(const void *)(at))))
#define EVERY(x) (_mm256_movemask_ps((__m256)(x)) == 0xFF)
#include "kernel/gemm/quantized_body.h"

#include "kernel/isa_end.h"
#endif
