/* The functions between this header and kernel/isa_end.h use AVX-512: what ts_target_host requires of that class of
 * machine. Defines ISA, which ends their names, and the size of their vectors. No include guard: each file has its own
 * part. */
#include <immintrin.h>

#if defined(__clang__)
#pragma clang attribute push(__attribute__((target("avx512f,avx512bw,avx512dq,avx512vl,fma"))), apply_to = function)
#else
#pragma GCC push_options
#pragma GCC target("avx512f,avx512bw,avx512dq,avx512vl,fma")
#endif

#define VECTOR_BYTES 64
#define ISA(name) name##_avx512

/* Counts the lanes of a mask at once. GCC 12 may keep the mask in a mask register, with 16 valid bits, and then counts
 * 32 (split_32 with -O1 and -fsanitize=thread); the asm forces all bits to be valid. */
static inline __attribute__((always_inline, unused)) int mask_lanes(unsigned mask) {
  __asm__("" : "+r"(mask));
  return __builtin_popcount(mask);
}
