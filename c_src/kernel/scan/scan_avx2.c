#include "kernel/scan/scan_job.h"

#if defined(__x86_64__)
#include "kernel/complex_number.h"
#include "kernel/gemm/gemm_widen.h"
#include "kernel/inline.h"
#include "kernel/isa_avx2.h"
#include "kernel/scan/scan_turn.h"

#define TURN_F32(v) turn_4x4_32((__m128 *)(void *)(v))
#define TURN_32(v) turn_8x8_32((__m256 *)(void *)(v))
#define TURN_64(v) turn_4x4_64((__m256d *)(void *)(v))
#define MIN_S32(a, b) (__typeof__(a))_mm256_min_epi32((__m256i)(a), (__m256i)(b))
#define MAX_S32(a, b) (__typeof__(a))_mm256_max_epi32((__m256i)(a), (__m256i)(b))
/* `m` has all bits where a is chosen. */
#define CHOOSE(m, a, b) _mm256_blendv_epi8((__m256i)(b), (__m256i)(a), m)
#define MIN_S64(a, b) (__typeof__(a))CHOOSE(_mm256_cmpgt_epi64((__m256i)(b), (__m256i)(a)), a, b)
#define MAX_S64(a, b) (__typeof__(a))CHOOSE(_mm256_cmpgt_epi64((__m256i)(a), (__m256i)(b)), a, b)
#include "kernel/scan/scan_body.h"

#include "kernel/isa_end.h"

#endif
