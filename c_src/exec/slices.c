#include "exec/slices.h"

#include "base/system.h"
#include "base/thread.h"

#include <pthread.h>
#include <time.h>

/* Moving a call to a dirty scheduler costs tens of microseconds at most: little compared with this slice. */
#define SLICE_NS (20 * 1000000)
#define TICK_NS (5 * 1000000)

/* The thread keeps ticking this long without runs before it sleeps, so that a run that begins soon need not wake it. */
#define IDLE_TICKS 100

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t wake = PTHREAD_COND_INITIALIZER;
static pthread_once_t once = PTHREAD_ONCE_INIT;
static ts_slice *slices;
static bool asleep;

static void end_slices(int64_t now) {
  for (ts_slice *s = slices; s; s = s->next)
    if (now >= s->end_ns) atomic_store_explicit(&s->control->pause, true, memory_order_relaxed);
}

static void *watch(void *unused) {
  const struct timespec tick = {.tv_nsec = TICK_NS};
  int idle = 0;
  (void)unused;
  for (;;) {
    pthread_mutex_lock(&lock);
    idle = slices ? 0 : idle + 1;
    while (!slices && idle > IDLE_TICKS) {
      asleep = true;
      pthread_cond_wait(&wake, &lock);
      asleep = false;
    }
    end_slices(ts_system_ns());
    pthread_mutex_unlock(&lock);
    nanosleep(&tick, NULL);
  }
  return NULL;
}

/* If the thread cannot start, runs do not pause. */
static void start(void) { (void)ts_thread_start("tessera-slices", watch, 0); }

void ts_slice_begin(ts_slice *slice, ts_run_control *control) {
  pthread_once(&once, start);
  atomic_store_explicit(&control->pause, false, memory_order_relaxed);
  *slice = (ts_slice){.control = control, .end_ns = ts_system_ns() + SLICE_NS};
  pthread_mutex_lock(&lock);
  slice->next = slices;
  if (slices) slices->previous = slice;
  slices = slice;
  if (asleep) pthread_cond_signal(&wake);
  pthread_mutex_unlock(&lock);
}

void ts_slice_end(ts_slice *slice) {
  pthread_mutex_lock(&lock);
  *(slice->previous ? &slice->previous->next : &slices) = slice->next;
  if (slice->next) slice->next->previous = slice->previous;
  pthread_mutex_unlock(&lock);
}
