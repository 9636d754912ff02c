/* Events. Runs and transfers are done when their function returns, so nearly all events are ready from the beginning.
 * A buffer may share bytes with the program. The event of the bytes ends with the buffer. */
#include "plugin/plugin.h"

/* One lock for all: it is held for a few instructions. */
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t ended = PTHREAD_COND_INITIALIZER;

typedef struct waiter {
  struct waiter *next;
  void (*call)(pj_error *error, void *arg);
  void *arg;
} waiter;

struct pj_event {
  int refs;
  bool is_ready;
  waiter *waiters;
};

ts_status plugin_event_new(bool later, pj_event **out) {
  TS_TRY(TS_NEW(out));
  **out = (pj_event){.refs = later ? 2 : 1, .is_ready = !later};
  return TS_SUCCESS;
}

/* The lock is held. */
static bool drop(pj_event *event) { return --event->refs == 0; }

void plugin_event_end(pj_event *event) {
  pthread_mutex_lock(&lock);
  waiter *all = event->waiters;
  event->waiters = NULL;
  event->is_ready = true;
  bool is_last = drop(event);
  pthread_cond_broadcast(&ended);
  pthread_mutex_unlock(&lock);
  if (is_last) ts_free(event);
  while (all) {
    waiter *next = all->next;
    all->call(NULL, all->arg);
    ts_free(all);
    all = next;
  }
}

/* A callback that still waits stays with the event, and its end calls it. */
ts_status plugin_event_destroy(pj_args *args) {
  pj_event *event = args->object;
  if (!event) return TS_SUCCESS;
  pthread_mutex_lock(&lock);
  bool is_last = drop(event);
  pthread_mutex_unlock(&lock);
  if (is_last) ts_free(event);
  return TS_SUCCESS;
}

static bool is_ready(pj_event *event) {
  pthread_mutex_lock(&lock);
  bool ready = event->is_ready;
  pthread_mutex_unlock(&lock);
  return ready;
}

ts_status plugin_event_is_ready(pj_args *args) {
  args->event.is_ready = is_ready(args->event.event);
  return TS_SUCCESS;
}

ts_status plugin_event_error(pj_args *args) {
  return is_ready(args->object) ? TS_SUCCESS : ts_error(TS_FAILED_PRECONDITION, "the event is not ready");
}

ts_status plugin_event_await(pj_args *args) {
  pj_event *event = args->object;
  pthread_mutex_lock(&lock);
  while (!event->is_ready) pthread_cond_wait(&ended, &lock);
  pthread_mutex_unlock(&lock);
  return TS_SUCCESS;
}

ts_status plugin_event_on_ready(pj_args *args) {
  pj_event *event = args->on_ready.event;
  waiter *w;
  TS_TRY(TS_NEW(&w));
  *w = (waiter){.call = args->on_ready.call, .arg = args->on_ready.arg};
  pthread_mutex_lock(&lock);
  bool now = event->is_ready;
  if (!now) {
    w->next = event->waiters;
    event->waiters = w;
  }
  pthread_mutex_unlock(&lock);
  if (!now) return TS_SUCCESS;
  ts_free(w);
  args->on_ready.call(NULL, args->on_ready.arg);
  return TS_SUCCESS;
}
