/* The functions between this header and kernel/isa_end.h use AMX and AVX-512: what ts_target.amx promises. */
#include <immintrin.h>

#if defined(TS_AMX_MODEL)
#include "amx_model.h" /* of the tests */
#endif

#if defined(__clang__)
#pragma clang attribute push( \
    __attribute__((target("avx512f,avx512bw,avx512dq,avx512vl,fma,amx-tile,amx-bf16,amx-int8"))), apply_to = function)
#else
#pragma GCC push_options
#pragma GCC target("avx512f,avx512bw,avx512dq,avx512vl,fma,amx-tile,amx-bf16,amx-int8")
#endif
