/* The floating-point environment for our code: round to nearest, no flush to zero, no traps. The caller's settings are
 * restored afterwards. */
#ifndef TS_BASE_FP_ENV_H
#define TS_BASE_FP_ENV_H

#include <stdint.h>

typedef struct ts_fp_env {
  uint64_t control;
} ts_fp_env;

static inline void ts_fp_enter(ts_fp_env *saved) {
#if defined(__x86_64__)
  uint32_t wanted = 0x1F80;
  saved->control = __builtin_ia32_stmxcsr();
  if (saved->control != wanted) __builtin_ia32_ldmxcsr(wanted);
#elif defined(__aarch64__)
  uint64_t wanted = 0;
  __asm__ volatile("mrs %0, fpcr" : "=r"(saved->control));
  __asm__ volatile("msr fpcr, %0" : : "r"(wanted));
#else
  saved->control = 0;
#endif
}

static inline void ts_fp_leave(const ts_fp_env *saved) {
#if defined(__x86_64__)
  /* restores the caller's sticky exception flags, too */
  __builtin_ia32_ldmxcsr((uint32_t)saved->control);
#elif defined(__aarch64__)
  __asm__ volatile("msr fpcr, %0" : : "r"(saved->control));
#else
  (void)saved;
#endif
}

#endif
