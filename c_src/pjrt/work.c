#include "pjrt/work.h"

#include "base/thread.h"

#include <pthread.h>
#include <stdatomic.h>

/* Compilers of plugins recurse over regions, and a program may have a thousand levels of regions: in 8 MB they end the
 * process. The system gives memory only for the part that is used. */
enum { MOST_THREADS = 16, STACK_BYTES = 256 << 20 };

static struct {
  pthread_mutex_t lock;
  pthread_cond_t signal;
  pj_job *first, **last;
  int waiting, threads, idle;
  int spare; /* threads that may be held by operations whose deadline has passed: others may begin beyond the limit */
} queue = {.lock = PTHREAD_MUTEX_INITIALIZER, .signal = PTHREAD_COND_INITIALIZER, .last = &queue.first};

static pj_job *take(void) {
  pj_job *job = queue.first;
  queue.first = job->next;
  if (!queue.first) queue.last = &queue.first;
  queue.waiting--;
  return job;
}

static void *work(void *nothing) {
  pthread_mutex_lock(&queue.lock);
  while (true) {
    queue.idle++;
    while (!queue.first) pthread_cond_wait(&queue.signal, &queue.lock);
    queue.idle--;
    pj_job *job = take();
    pthread_mutex_unlock(&queue.lock);
    job->body(job);
    pthread_mutex_lock(&queue.lock);
  }
  return nothing;
}

static bool start(void) {
  bool started = ts_thread_start("tessera_pjrt", work, STACK_BYTES);
  if (started) return true;
  pthread_mutex_lock(&queue.lock);
  queue.threads--;
  pthread_mutex_unlock(&queue.lock);
  return false;
}

/* Whether to start one more thread; counts it already. The lock is held. */
static bool reserve(bool wanted) {
  bool more = wanted && queue.threads < MOST_THREADS + queue.spare;
  if (more) queue.threads++;
  return more;
}

ts_status pj_work_start(void) {
  pthread_mutex_lock(&queue.lock);
  bool more = reserve(queue.threads == 0);
  pthread_mutex_unlock(&queue.lock);
  if (more && !start()) return ts_error(TS_RESOURCE_EXHAUSTED, "no thread can be started for plugins");
  return TS_SUCCESS;
}

void pj_work(pj_job *job) {
  job->next = NULL;
  pthread_mutex_lock(&queue.lock);
  *queue.last = job;
  queue.last = &job->next;
  queue.waiting++;
  bool more = reserve(queue.idle < queue.waiting);
  pthread_cond_signal(&queue.signal);
  pthread_mutex_unlock(&queue.lock);
  if (more) (void)start(); /* others do the work if not */
}

void pj_work_spare(int count) {
  pthread_mutex_lock(&queue.lock);
  queue.spare += count;
  bool more = reserve(queue.idle < queue.waiting);
  pthread_mutex_unlock(&queue.lock);
  if (more) (void)start();
}

/* ---- events */

static void finish(pj_wait *wait, ts_status status) {
  pj_destroy(wait->plugin, PJ_EVENT_DESTROY, wait->event);
  wait->event = NULL;
  wait->then(wait, status);
}

static void finish_with_error(pj_job *job) {
  pj_wait *wait = (pj_wait *)job;
  finish(wait, pj_status(wait->plugin, wait->error, wait->what));
}

/* On a thread of the plugin's, or inside of the call below. */
static void ready(pj_error *error, void *arg) {
  pj_wait *wait = arg;
  wait->error = error;
  if (atomic_fetch_sub(&wait->parts, 1) == 1) pj_work(&wait->job);
}

/* Waits for an event that cannot be asked: the operation's operands and results must stay until its end. */
static void wait_here(pj_wait *wait) {
  finish(wait, ts_error_context(pj_call(wait->plugin, PJ_EVENT_AWAIT, &PJ_ARGS(.event = {.event = wait->event})), "%s",
                                wait->what));
}

/* The event must not be destroyed before the call has returned, so the end has two parts. */
static ts_status register_wait(pj_wait *wait) {
  atomic_store(&wait->parts, 2);
  wait->job.body = finish_with_error;
  pj_args args = PJ_ARGS(.on_ready = {.event = wait->event, .call = ready, .arg = wait});
  TS_TRY(pj_call(wait->plugin, PJ_EVENT_ON_READY, &args));
  if (atomic_fetch_sub(&wait->parts, 1) == 1) finish_with_error(&wait->job);
  return TS_SUCCESS;
}

static void set_event(const pj_plugin *plugin, pj_event *event, pj_wait *wait) {
  wait->plugin = plugin;
  wait->event = event;
  wait->error = NULL;
}

/* False if the event has not ended, or the plugin does not tell. */
static bool finish_ended(pj_wait *wait) {
  const pj_plugin *plugin = wait->plugin;
  pj_args args = PJ_ARGS(.event = {.event = wait->event});
  if (!wait->event) {
    wait->then(wait, TS_SUCCESS);
    return true;
  }
  if (!ts_status_consume_ok(pj_call(plugin, PJ_EVENT_IS_READY, &args)) || !args.event.is_ready) return false;
  pj_args error = PJ_ARGS(.event = {.event = wait->event});
  finish(wait, ts_error_context(pj_call(plugin, PJ_EVENT_ERROR, &error), "%s", wait->what));
  return true;
}

void pj_await(const pj_plugin *plugin, pj_event *event, pj_wait *wait) {
  set_event(plugin, event, wait);
  if (!finish_ended(wait) && !ts_status_consume_ok(register_wait(wait))) wait_here(wait);
}

ts_status pj_watch(const pj_plugin *plugin, pj_event *event, pj_wait *wait) {
  set_event(plugin, event, wait);
  return finish_ended(wait) ? TS_SUCCESS : register_wait(wait);
}
