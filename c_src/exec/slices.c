#include "exec/slices.h"

#include "base/system.h"
#include "base/thread.h"

#include <pthread.h>
#include <time.h>

/* Moving a call to a dirty scheduler costs tens of microseconds at most: little compared with this slice. */
#define SLICE_NS (20 * 1000000)
#define TICK_NS (5 * 1000000)
/* A normal scheduler should not be held for more than a millisecond. */
#define BRIEF_NS 1000000
/* For so long after a brief slice the thread expects another brief slice, and has short ticks. */
#define EXPECTED_NS 100000000

/* The thread keeps ticking this long without runs before it sleeps, so that a run that begins soon need not wake it. */
#define IDLE_TICKS 100

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t wake = PTHREAD_COND_INITIALIZER;
static pthread_once_t once = PTHREAD_ONCE_INIT;
static ts_slice *slices;
static bool asleep, is_started;
static int64_t expects_brief; /* until then */

static void end_slices(int64_t now) {
  for (ts_slice *s = slices; s; s = s->next)
    if (now >= s->end_ns) atomic_store_explicit(&s->control->pause, true, memory_order_relaxed);
}

static void *watch(void *unused) {
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
    const int64_t now = ts_system_ns();
    const struct timespec tick = {.tv_nsec = now < expects_brief ? BRIEF_NS : TICK_NS};
    end_slices(now);
    pthread_mutex_unlock(&lock);
    nanosleep(&tick, NULL);
  }
  return NULL;
}

static void start(void) { is_started = ts_thread_start("tessera-slices", watch, 0); }

bool ts_slices_start(void) {
  pthread_once(&once, start);
  return is_started;
}

void ts_slice_begin(ts_slice *slice, ts_run_control *control, bool brief) {
  (void)ts_slices_start();
  atomic_store_explicit(&control->pause, false, memory_order_relaxed);
  const int64_t now = ts_system_ns();
  *slice = (ts_slice){.control = control, .end_ns = now + (brief ? BRIEF_NS : SLICE_NS)};
  pthread_mutex_lock(&lock);
  if (brief) expects_brief = now + EXPECTED_NS;
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
