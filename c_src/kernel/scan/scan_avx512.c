#include "kernel/scan/scan_job.h"

#if defined(__x86_64__)
#include "kernel/complex_number.h"
#include "kernel/gemm/gemm_widen.h"
#include "kernel/inline.h"
#include "kernel/isa_avx512.h"
#include "kernel/scan/scan_turn.h"

#define TURN_F32(v) turn_8x8_32((__m256 *)(void *)(v))
#define TURN_32(v) turn_16x16_32((__m512 *)(void *)(v))
#define TURN_64(v) turn_8x8_64((__m512d *)(void *)(v))
#define MIN_S32(a, b) (__typeof__(a))_mm512_min_epi32((__m512i)(a), (__m512i)(b))
#define MAX_S32(a, b) (__typeof__(a))_mm512_max_epi32((__m512i)(a), (__m512i)(b))
#define MIN_S64(a, b) (__typeof__(a))_mm512_min_epi64((__m512i)(a), (__m512i)(b))
#define MAX_S64(a, b) (__typeof__(a))_mm512_max_epi64((__m512i)(a), (__m512i)(b))
#include "kernel/scan/scan_body.h"

#include "kernel/isa_end.h"

#endif
