#include "operation_end.h"

#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>

/* Of all operations. */
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t signal = PTHREAD_COND_INITIALIZER;

void test_ended(ts_status status, void *arg) {
  end *e = arg;
  pthread_mutex_lock(&lock);
  e->status = status;
  atomic_fetch_add(&e->times, 1);
  pthread_cond_broadcast(&signal);
  pthread_mutex_unlock(&lock);
}

ts_status wait_for(end *e) {
  pthread_mutex_lock(&lock);
  while (atomic_load(&e->times) == 0) pthread_cond_wait(&signal, &lock);
  pthread_mutex_unlock(&lock);
  for (int i = 0; i < 3; i++) sched_yield();
  if (atomic_exchange(&e->times, 0) != 1) {
    fprintf(stderr, "an operation of a device ended more than once\n");
    abort();
  }
  return e->status;
}
