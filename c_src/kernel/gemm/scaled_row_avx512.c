#include "kernel/gemm/scaled_row.h"

#if defined(__x86_64__)
#include "kernel/isa_avx512.h"

#define BYTES(at) _mm_loadu_si128((const __m128i *)(const void *)(at))
#define SIGNED(at) ((vf)_mm512_cvtepi32_ps(_mm512_cvtepi8_epi32(BYTES(at))))
#define UNSIGNED(at) ((vf)_mm512_cvtepi32_ps(_mm512_cvtepu8_epi32(BYTES(at))))
#include "kernel/gemm/scaled_row_body.h"

#include "kernel/isa_end.h"
#endif
