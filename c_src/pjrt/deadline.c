#include "pjrt/deadline.h"

#include "base/system.h"
#include "base/thread.h"
#include "pjrt/work.h"

#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <time.h>

/* One thread looks for deadlines that have passed. It sleeps until the first of them. */
static struct {
  pthread_mutex_t lock;
  pthread_cond_t earlier; /* by the monotonic clock */
  pthread_once_t once;
  pj_deadline *first;
  int64_t wakes_ns;
  bool is_watched;
} all = {.lock = PTHREAD_MUTEX_INITIALIZER, .once = PTHREAD_ONCE_INIT};

static void initialize(void) {
  pthread_condattr_t clock;
  pthread_condattr_init(&clock);
  pthread_condattr_setclock(&clock, CLOCK_MONOTONIC);
  pthread_cond_init(&all.earlier, &clock);
  pthread_condattr_destroy(&clock);
}

/* ---- the list, under the lock */

static void insert(pj_deadline *d) {
  d->next = all.first;
  d->at = &all.first;
  if (d->next) d->next->at = &d->next;
  all.first = d;
}

static void take_out(pj_deadline *d) {
  *d->at = d->next;
  if (d->next) d->next->at = d->at;
  d->at = NULL;
}

/* A deadline that has passed, or NULL and the time of the first one. */
static pj_deadline *find_passed(int64_t now, int64_t *out_first) {
  *out_first = INT64_MAX;
  for (pj_deadline *d = all.first; d; d = d->next) {
    if (d->at_ns <= now) return d;
    if (d->at_ns < *out_first) *out_first = d->at_ns;
  }
  return NULL;
}

/* ---- the thread */

/* After the lock is released the operation may end at any moment, and its memory with it. */
static void answer(pj_deadline *d) {
  ts_done done = d->done;
  ts_status late = ts_error(TS_UNAVAILABLE, "%s did not end within %lld ms (%s). It goes on in the background",
                            d->limit.what, (long long)d->limit.ms, d->limit.option);
  take_out(d);
  d->is_late = true;
  atomic_fetch_add(d->limit.late, 1);
  pthread_mutex_unlock(&all.lock);
  pj_work_spare(1);
  ts_done_call(done, late);
  pthread_mutex_lock(&all.lock);
}

static void sleep_until(int64_t ns) {
  struct timespec until = {.tv_sec = ns / 1000000000, .tv_nsec = ns % 1000000000};
  all.wakes_ns = ns;
  if (ns == INT64_MAX)
    pthread_cond_wait(&all.earlier, &all.lock);
  else
    pthread_cond_timedwait(&all.earlier, &all.lock, &until);
}

static void *watch(void *nothing) {
  pthread_mutex_lock(&all.lock);
  while (true) {
    int64_t first;
    pj_deadline *passed = find_passed(ts_system_ns(), &first);
    if (passed)
      answer(passed);
    else
      sleep_until(first);
  }
  return nothing;
}

/* The lock is held. */
static ts_status start(void) {
  if (!all.is_watched && !ts_thread_start("tessera_late", watch, 0))
    return ts_error(TS_RESOURCE_EXHAUSTED, "no thread can be started for deadlines of plugins");
  all.is_watched = true;
  return TS_SUCCESS;
}

/* ---- operations */

static ts_status late_error(void) { return ts_error(TS_CANCELLED, "the deadline has passed"); }

/* The lock is held. */
static ts_status set(pj_deadline *d, const pj_limit *limit) {
  int64_t at_ns = ts_system_ns() + limit->ms * 1000000;
  if (d->is_late) return late_error();
  if (d->at && d->at_ns <= at_ns) return TS_SUCCESS;
  TS_TRY(start());
  if (d->at) take_out(d);
  d->limit = *limit;
  d->at_ns = at_ns;
  insert(d);
  if (at_ns < all.wakes_ns) pthread_cond_signal(&all.earlier);
  return TS_SUCCESS;
}

static ts_status begin(pj_deadline *d, const pj_limit *limit) {
  if (limit->ms <= 0) return TS_SUCCESS;
  if (atomic_load(limit->late) >= PJ_MOST_LATE)
    return ts_error(TS_UNAVAILABLE, "the device does not answer: %d operations have not ended by their deadlines",
                    PJ_MOST_LATE);
  pthread_once(&all.once, initialize);
  pthread_mutex_lock(&all.lock);
  ts_status status = set(d, limit);
  pthread_mutex_unlock(&all.lock);
  return status;
}

ts_status pj_deadline_begin(pj_deadline *d, const pj_limit *limit, ts_done done) {
  *d = (pj_deadline){.done = done};
  return begin(d, limit);
}

ts_status pj_deadline_begin_part(pj_deadline *d, const pj_limit *limit, pj_deadline *whole) {
  *whole = *d;
  return begin(d, limit);
}

void pj_deadline_end_part(pj_deadline *d, const pj_deadline *whole) {
  if (!pj_has_deadline(d)) return;
  pthread_mutex_lock(&all.lock);
  if (!d->is_late) {
    take_out(d);
    d->limit = whole->limit;
    d->at_ns = whole->at_ns;
    if (pj_has_deadline(d)) insert(d);
  }
  pthread_mutex_unlock(&all.lock);
}

ts_status pj_deadline_check(pj_deadline *d) {
  if (!pj_has_deadline(d)) return TS_SUCCESS;
  pthread_mutex_lock(&all.lock);
  bool late = d->is_late;
  pthread_mutex_unlock(&all.lock);
  return late ? late_error() : TS_SUCCESS;
}

bool pj_deadline_end(pj_deadline *d) {
  if (!pj_has_deadline(d)) return true;
  pthread_mutex_lock(&all.lock);
  bool late = d->is_late;
  if (d->at) take_out(d);
  pthread_mutex_unlock(&all.lock);
  if (!late) return true;
  atomic_fetch_sub(d->limit.late, 1);
  pj_work_spare(-1);
  return false;
}
