/* Ends what kernel/isa_avx2.h or kernel/isa_avx512.h began. */
#if defined(__clang__)
#pragma clang attribute pop
#else
#pragma GCC pop_options
#endif
