/* The functions between this header and kernel/isa_end.h use AVX2: the instructions that ts_target_host requires of
 * that class of machine, and conversions of f16, which all these machines have; generated code uses them as well.
 * Defines ISA, which ends their names, and the size of their vectors. No include guard: each file has its own part. */
#include <immintrin.h>

#if defined(__clang__)
#pragma clang attribute push(__attribute__((target("avx2,fma,f16c,bmi,bmi2"))), apply_to = function)
#else
#pragma GCC push_options
#pragma GCC target("avx2,fma,f16c,bmi,bmi2")
#endif

#define VECTOR_BYTES 32
#define ISA(name) name##_avx2
