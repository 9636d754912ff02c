/* Work sharing: a parallel run is a job on its caller's stack, linked into a list while it accepts helpers. An idle
 * worker joins the first job with tasks left and fewer helpers than its width. The caller executes tasks itself and
 * never waits for a helper to join; it waits only for helpers that still run a task when no tasks are left. It spins
 * for a short time, then it sleeps, since a task may be all of a partition's work. */
#include "exec/pool.h"

#include "base/fp_env.h"
#include "base/lock.h"
#include "base/system.h"
#include "base/thread.h"

#include <limits.h>
#include <linux/futex.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#define MAX_THREADS 256
/* How long a worker spins before it sleeps: the steps of a program follow each other within a few microseconds, and a
 * futex wake costs tens. */
#define SPIN_NS 20000
/* A helper that has not joined so long after its wake-up is late. */
#define LATE_NS 50000
#define MOVABLE 8

typedef struct job {
  struct job *next, *previous; /* under pool.lock */
  ts_task_fn fn;
  void *arg;
  int64_t tasks;
  int width;
  _Atomic int64_t next_task;
  int helpers;             /* joined so far; under pool.lock */
  _Atomic uint32_t active; /* futex word: helpers at work now; with CALLER_SLEEPS, the caller sleeps until 0 */
} job;

#define CALLER_SLEEPS (UINT32_C(1) << 31)
#define WAIT_SPINS 4096

typedef struct pool {
  pthread_mutex_t lock;
  job *jobs;               /* the jobs that accept helpers */
  _Atomic uint32_t posted; /* futex word: counts jobs ever posted */
  _Atomic int32_t sleepers;
  int workers;
  _Atomic int started;            /* of the workers, as they number themselves */
  _Atomic pid_t movable[MOVABLE]; /* the first workers; with more CPUs than that, one of them is idle. 0: not started */
} pool;

/* For Tessera's own tasks; and for plugins' tasks, which may take any time. */
static pool own = {.lock = PTHREAD_ADAPTIVE_MUTEX_INITIALIZER_NP},
            foreign = {.lock = PTHREAD_ADAPTIVE_MUTEX_INITIALIZER_NP};

static void futex_wait(_Atomic uint32_t *word, uint32_t value) {
  syscall(SYS_futex, word, FUTEX_WAIT_PRIVATE, value, NULL, NULL, 0);
}

static void futex_wake(_Atomic uint32_t *word, int count) {
  syscall(SYS_futex, word, FUTEX_WAKE_PRIVATE, count, NULL, NULL, 0);
}

/* ---- width ---- */

int ts_cpu_count(void) {
  int cpus = ts_system_cpus();
  return cpus > MAX_THREADS ? MAX_THREADS : cpus;
}

/* ---- tasks ---- */

/* False when no task is left. */
static bool do_task(job *j, int worker) {
  /* relaxed: tasks are independent; `active` publishes their writes */
  int64_t task = atomic_fetch_add_explicit(&j->next_task, 1, memory_order_relaxed);
  if (task >= j->tasks) return false;
  j->fn(j->arg, task, worker);
  return true;
}

static void work(job *j, int worker) {
  while (do_task(j, worker)) {}
}

static bool is_alone(job *j) { return atomic_load_explicit(&j->active, memory_order_relaxed) == 0; }

/* The kernel often queues a woken worker on the caller's CPU and leaves it there until the next tick. */
static void move_workers_away(pool *p) {
  for (int i = 0; i < MOVABLE; i++) {
    pid_t thread = atomic_load_explicit(&p->movable[i], memory_order_relaxed);
    if (thread) ts_thread_move_away(thread);
  }
}

/* The caller's loop after it has woken workers, until the first of them joins. */
static void work_alone(pool *p, job *j) {
  int64_t late = ts_system_ns() + LATE_NS;
  while (is_alone(j) && do_task(j, 0)) {
    if (ts_system_ns() < late) continue;
    if (is_alone(j)) move_workers_away(p);
    return;
  }
}

static bool exhausted(job *j) { return atomic_load_explicit(&j->next_task, memory_order_relaxed) >= j->tasks; }

static void unlink_job(pool *p, job *j) {
  if (j->previous) j->previous->next = j->next;
  if (j->next) j->next->previous = j->previous;
  if (p->jobs == j) p->jobs = j->next;
  j->next = j->previous = NULL;
}

/* Joins the first job that accepts a helper; NULL when there is none. */
static job *join(pool *p, int *worker) {
  pthread_mutex_lock(&p->lock);
  job *j = p->jobs;
  while (j && exhausted(j)) j = j->next;
  if (j) {
    *worker = ++j->helpers;
    atomic_fetch_add_explicit(&j->active, 1, memory_order_relaxed);
    if (j->helpers + 1 >= j->width) {
      unlink_job(p, j);
      j->helpers = INT_MIN; /* marks it as unlinked */
    }
  }
  pthread_mutex_unlock(&p->lock);
  return j;
}

/* A helper's last access to a job. */
static void leave(job *j) {
  _Atomic uint32_t *active = &j->active;
  /* release: the caller must see the tasks' writes when it reads 0. After this the job is no longer valid; to wake
   * sleepers at its address is harmless then. */
  uint32_t before = atomic_fetch_sub_explicit(active, 1, memory_order_release);
  if (before == (CALLER_SLEEPS | 1)) futex_wake(active, 1);
}

/* Waits until the helpers have left. acquire: pairs with their release. */
static void wait_for_helpers(job *j) {
  for (int spins = 0; spins < WAIT_SPINS; spins++) {
    if (atomic_load_explicit(&j->active, memory_order_acquire) == 0) return;
    ts_relax();
  }
  uint32_t helpers = atomic_fetch_or_explicit(&j->active, CALLER_SLEEPS, memory_order_acquire) | CALLER_SLEEPS;
  while (helpers != CALLER_SLEEPS) {
    futex_wait(&j->active, helpers);
    helpers = atomic_load_explicit(&j->active, memory_order_acquire);
  }
}

static void *serve(pool *p) {
  ts_fp_env saved;
  int number = atomic_fetch_add(&p->started, 1);
  if (number < MOVABLE) atomic_store(&p->movable[number], gettid());
  ts_fp_enter(&saved);
  for (;;) {
    uint32_t seen = atomic_load_explicit(&p->posted, memory_order_acquire);
    int worker;
    job *j = join(p, &worker);
    if (j) {
      work(j, worker);
      leave(j);
      continue;
    }
    int64_t end = ts_system_ns() + SPIN_NS;
    while (atomic_load_explicit(&p->posted, memory_order_acquire) == seen && ts_system_ns() < end)
      for (int i = 0; i < 16; i++) ts_relax();
    if (atomic_load_explicit(&p->posted, memory_order_acquire) != seen) continue;
    atomic_fetch_add(&p->sleepers, 1);
    futex_wait(&p->posted, seen);
    atomic_fetch_sub(&p->sleepers, 1);
  }
  return NULL;
}

static void *serve_own(void *unused) {
  (void)unused;
  return serve(&own);
}

static void *serve_foreign(void *unused) {
  (void)unused;
  return serve(&foreign);
}

/* With fewer workers than wanted, runs are only slower. Plugins may need a larger stack. */
static void start_workers(pool *p, const char *format, void *(*body)(void *), size_t stack_bytes) {
  int wanted = ts_cpu_count() - 1;
  for (int i = 0; i < wanted; i++) {
    char name[24];
    snprintf(name, sizeof name, "%s-%d", format, i + 1);
    p->workers += ts_thread_start(name, body, stack_bytes);
  }
}

static void start_own(void) { start_workers(&own, "tessera", serve_own, 2 << 20); }
static void start_foreign(void) { start_workers(&foreign, "tessera-part", serve_foreign, 8 << 20); }

static void start(const pool *p) {
  static pthread_once_t once_own = PTHREAD_ONCE_INIT, once_foreign = PTHREAD_ONCE_INIT;
  if (p == &own)
    pthread_once(&once_own, start_own);
  else
    pthread_once(&once_foreign, start_foreign);
}

static _Thread_local uint64_t given;

uint64_t ts_pool_given(void) { return given; }

bool ts_pool_is_awake(int threads) {
  int awake = atomic_load_explicit(&own.started, memory_order_relaxed) -
              atomic_load_explicit(&own.sleepers, memory_order_relaxed);
  return awake + 1 >= (threads > 0 && threads < ts_cpu_count() ? threads : ts_cpu_count());
}

static void run_shared(const ts_parallel *self, int64_t tasks, ts_task_fn fn, void *arg) {
  pool *p = self->context;
  if (tasks > 1 && self->width > 1) start(p);
  if (tasks <= 1 || self->width <= 1 || p->workers == 0) {
    for (int64_t i = 0; i < tasks; i++) fn(arg, i, 0);
    return;
  }
  given++;
  job j = {.fn = fn, .arg = arg, .tasks = tasks, .width = self->width};
  pthread_mutex_lock(&p->lock);
  j.next = p->jobs;
  if (p->jobs) p->jobs->previous = &j;
  p->jobs = &j;
  pthread_mutex_unlock(&p->lock);
  atomic_fetch_add_explicit(&p->posted, 1, memory_order_seq_cst);
  int helpers = self->width - 1 < tasks - 1 ? self->width - 1 : (int)(tasks - 1);
  if (atomic_load_explicit(&p->sleepers, memory_order_seq_cst) > 0) {
    futex_wake(&p->posted, helpers);
    work_alone(p, &j);
  }
  work(&j, 0);
  pthread_mutex_lock(&p->lock);
  if (j.helpers >= 0) unlink_job(p, &j); /* after this no worker can join */
  pthread_mutex_unlock(&p->lock);
  wait_for_helpers(&j);
}

static ts_parallel shared[2][MAX_THREADS + 1];

static void init_shared(void) {
  for (int i = 1; i <= MAX_THREADS; i++) {
    shared[0][i] = (ts_parallel){.context = &own, .width = i, .run = run_shared};
    shared[1][i] = (ts_parallel){.context = &foreign, .width = i, .run = run_shared};
  }
}

static const ts_parallel *parallel_of(int which, int threads) {
  static pthread_once_t once = PTHREAD_ONCE_INIT;
  pthread_once(&once, init_shared);
  int cpus = ts_cpu_count();
  return &shared[which][threads <= 0 || threads > cpus ? cpus : threads];
}

const ts_parallel *ts_pool_parallel(int threads) { return parallel_of(0, threads); }
const ts_parallel *ts_pool_away(int threads) { return parallel_of(1, threads); }
