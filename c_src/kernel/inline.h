/* Functions and loops of kernels whose vectors stay in registers. */
#ifndef TS_KERNEL_INLINE_H
#define TS_KERNEL_INLINE_H

/* A function whose code is repeated at each call, so that its constant arguments are known. */
#define INLINE static inline __attribute__((always_inline))

/* A loop over a few vectors. */
#if defined __SANITIZE_ADDRESS__ || defined __SANITIZE_THREAD__ || !defined __OPTIMIZE__
#define UNROLL /* these builds optimize less or not at all, and the compiler warns of a loop that it leaves */
#else
#define UNROLL _Pragma("GCC unroll 16")
#endif

#endif
