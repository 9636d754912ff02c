/* Waiting for operations. */
#include "device/remote.h"

static void signal_done(ts_status status, void *arg) {
  ts_wait *wait = arg;
  pthread_mutex_lock(&wait->lock);
  wait->status = status;
  wait->is_done = true;
  pthread_cond_signal(&wait->signal); /* under the lock: afterwards the memory may be gone */
  pthread_mutex_unlock(&wait->lock);
}

ts_done ts_wait_begin(ts_wait *wait) {
  *wait = (ts_wait){.lock = PTHREAD_MUTEX_INITIALIZER, .signal = PTHREAD_COND_INITIALIZER};
  return (ts_done){signal_done, wait};
}

ts_status ts_wait_end(ts_wait *wait) {
  pthread_mutex_lock(&wait->lock);
  while (!wait->is_done) pthread_cond_wait(&wait->signal, &wait->lock);
  pthread_mutex_unlock(&wait->lock);
  pthread_cond_destroy(&wait->signal);
  pthread_mutex_destroy(&wait->lock);
  return wait->status;
}
