/* A function whose code is repeated at each call, so that its vectors stay in registers and its constant arguments are
 * known. */
#ifndef TS_KERNEL_INLINE_H
#define TS_KERNEL_INLINE_H

#define INLINE static inline __attribute__((always_inline))

#endif
