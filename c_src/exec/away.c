#include "exec/away.h"

#include "base/fp_env.h"
#include "base/thread.h"

#include <pthread.h>
#include <stddef.h>

/* Libraries expect a stack such as a program's main thread has. */
#define STACK_BYTES (8 << 20)

static struct {
  pthread_mutex_t lock;
  pthread_cond_t wake;
  ts_away *first, **end; /* the queue */
  int queued, idle, threads;
} away = {.lock = PTHREAD_MUTEX_INITIALIZER, .wake = PTHREAD_COND_INITIALIZER, .end = &away.first};

static ts_away *take(void) {
  pthread_mutex_lock(&away.lock);
  away.idle++;
  while (!away.first) pthread_cond_wait(&away.wake, &away.lock);
  away.idle--;
  ts_away *call = away.first;
  away.first = call->next;
  if (!away.first) away.end = &away.first;
  away.queued--;
  pthread_mutex_unlock(&away.lock);
  return call;
}

static void *serve(void *unused) {
  ts_fp_env saved;
  (void)unused;
  ts_fp_enter(&saved);
  for (;;) {
    ts_away *call = take();
    call->run(call->context); /* which may free the call */
  }
  return NULL;
}

/* Under the lock. A thread that is about to take a call still counts as idle, and its call as queued. */
static bool has_thread(void) {
  if (away.queued < away.idle || away.threads == TS_MOST_AWAY) return true;
  if (ts_thread_start("tessera-away", serve, STACK_BYTES)) away.threads++;
  return away.threads > 0;
}

bool ts_away_start(ts_away *call) {
  pthread_mutex_lock(&away.lock);
  bool has = has_thread();
  if (has) {
    call->next = NULL;
    *away.end = call;
    away.end = &call->next;
    away.queued++;
    pthread_cond_signal(&away.wake);
  }
  pthread_mutex_unlock(&away.lock);
  return has;
}
