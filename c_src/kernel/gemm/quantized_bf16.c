/* The same as quantized_avx512.c where the CPU converts numbers to bf16. */
#include "kernel/gemm/quantized.h"
#include "kernel/inline.h"

#if defined(__x86_64__)
#include "kernel/isa_bf16.h"

#define VECTOR_BYTES 64
#define ISA(name) name##_bf16

/* The words of 16 bits of a converted vector become the high halves of floats. */
INLINE void round_pair(void *pair) {
  const __m512i low = _mm512_set_epi16(15, 15, 14, 14, 13, 13, 12, 12, 11, 11, 10, 10, 9, 9, 8, 8, 7, 7, 6, 6, 5, 5, 4,
                                       4, 3, 3, 2, 2, 1, 1, 0, 0);
  const __m512i high = _mm512_add_epi16(low, _mm512_set1_epi16(16));
  __m512 *at = pair;
  const __m512i both = (__m512i)_mm512_cvtne2ps_pbh(at[1], at[0]);
  at[0] = (__m512)_mm512_maskz_permutexvar_epi16(0xAAAAAAAA, low, both);
  at[1] = (__m512)_mm512_maskz_permutexvar_epi16(0xAAAAAAAA, high, both);
}
#define ROUND_PAIR round_pair
#include "kernel/gemm/quantized_512.h"
#include "kernel/gemm/quantized_body.h"

#include "kernel/isa_end.h"
#endif
