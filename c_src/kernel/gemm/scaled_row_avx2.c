#include "kernel/gemm/scaled_row.h"

#if defined(__x86_64__)
#include "kernel/isa_avx2.h"

#define BYTES(at) _mm_loadl_epi64((const __m128i *)(const void *)(at))
#define SIGNED(at) ((vf)_mm256_cvtepi32_ps(_mm256_cvtepi8_epi32(BYTES(at))))
#define UNSIGNED(at) ((vf)_mm256_cvtepi32_ps(_mm256_cvtepu8_epi32(BYTES(at))))
#include "kernel/gemm/scaled_row_body.h"

#include "kernel/isa_end.h"
#endif
