/* Mutexes that are held for tens of nanoseconds by every run: a waiter spins a
 * little before it sleeps, because being woken costs microseconds. */
#ifndef TS_BASE_LOCK_H
#define TS_BASE_LOCK_H

#include <pthread.h>

static inline void ts_lock_init(pthread_mutex_t *lock) {
  pthread_mutexattr_t attr;
  pthread_mutexattr_init(&attr);
  pthread_mutexattr_settype(&attr, PTHREAD_MUTEX_ADAPTIVE_NP);
  pthread_mutex_init(lock, &attr); /* cannot fail with this attribute on Linux */
  pthread_mutexattr_destroy(&attr);
}

#endif
