#include "tensor/renewal.h"

#include "base/system.h"
#include "base/thread.h"
#include "tensor/pages.h"

#include <pthread.h>
#include <stddef.h>
#include <time.h>

/* How long the thread rests before each block, so that the call which needed memory is over. */
#define REST_MS 200

/* And after a page for which it had to wait for a CPU. A slow page takes 5 ms, so that others lose a tenth of one CPU:
 * what has to be done is the same, and sooner is better for them, whose small pages cost more the longer they last. */
#define REST_BUSY_MS 50

static struct {
  pthread_mutex_t lock;
  pthread_cond_t changed;
  ts_renewal *waiting, *current;
  bool started, interrupted; /* the latter: what is current shall end */
} all = {.lock = PTHREAD_MUTEX_INITIALIZER, .changed = PTHREAD_COND_INITIALIZER};

static struct timespec after_ms(long ms) {
  struct timespec end;
  clock_gettime(CLOCK_REALTIME, &end);
  end.tv_nsec += ms * 1000000;
  end.tv_sec += end.tv_nsec / 1000000000;
  end.tv_nsec %= 1000000000;
  return end;
}

static bool is_interrupted(void) {
  pthread_mutex_lock(&all.lock);
  bool interrupted = all.interrupted;
  pthread_mutex_unlock(&all.lock);
  return interrupted;
}

/* False when interrupted. */
static bool rest(long ms) {
  struct timespec end = after_ms(ms);
  pthread_mutex_lock(&all.lock);
  while (!all.interrupted && pthread_cond_timedwait(&all.changed, &all.lock, &end) == 0) {}
  bool go_on = !all.interrupted;
  pthread_mutex_unlock(&all.lock);
  return go_on;
}

/* Whether others needed the CPU meanwhile. A write makes the page, not advice: that would hold the map of the process.
 */
static bool make_page(char *page) {
  int64_t start = ts_system_ns(), cpu = ts_pages_touch(page);
  return ts_system_ns() - start > cpu + cpu / 4 + 200000;
}

/* NULL when interrupted, or without memory. */
static void *make(int64_t bytes) {
  char *block = ts_pages_map((size_t)bytes);
  if (!block) return NULL;
  for (int64_t at = 0; at < bytes; at += (int64_t)TS_HUGE_PAGE) {
    bool busy = make_page(block + at);
    if (busy ? rest(REST_BUSY_MS) : !is_interrupted()) continue;
    ts_pages_free(block, (size_t)bytes);
    return NULL;
  }
  return block;
}

static void renew(ts_renewal *renewal) {
  int64_t bytes;
  while (rest(REST_MS) && (bytes = renewal->begin(renewal->owner)) > 0)
    renewal->end(renewal->owner, make(bytes), bytes);
}

static void *thread_main(void *unused) {
  (void)unused;
  pthread_mutex_lock(&all.lock);
  for (;;) {
    while (!all.waiting) pthread_cond_wait(&all.changed, &all.lock);
    ts_renewal *renewal = all.current = all.waiting;
    all.waiting = renewal->next;
    renewal->waits = false;
    pthread_mutex_unlock(&all.lock);
    renew(renewal);
    pthread_mutex_lock(&all.lock);
    all.current = NULL;
    all.interrupted = false;
    pthread_cond_broadcast(&all.changed);
  }
  return NULL;
}

void ts_renewal_request(ts_renewal *renewal) {
  pthread_mutex_lock(&all.lock);
  if (!all.started) all.started = ts_thread_start("tessera-pages", thread_main, 256 << 10);
  if (!renewal->waits && all.started) {
    renewal->next = all.waiting;
    renewal->waits = true;
    all.waiting = renewal;
    pthread_cond_broadcast(&all.changed);
  }
  pthread_mutex_unlock(&all.lock);
}

static void take_back(ts_renewal *renewal) {
  ts_renewal **at = &all.waiting;
  while (*at != renewal) at = &(*at)->next;
  *at = renewal->next;
  renewal->waits = false;
}

void ts_renewal_interrupt(ts_renewal *renewal) {
  pthread_mutex_lock(&all.lock);
  if (renewal->waits) take_back(renewal);
  while (all.current == renewal) {
    all.interrupted = true;
    pthread_cond_broadcast(&all.changed);
    pthread_cond_wait(&all.changed, &all.lock);
  }
  pthread_mutex_unlock(&all.lock);
}
