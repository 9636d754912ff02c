/* The compile threads. They start one by one while jobs wait, up to the number of CPUs, and never end; one more, of low
 * priority, runs jobs without a waiter. A thread with a fatal error of LLVM reports it as its job's result and sleeps
 * for ever, since control may not return to LLVM; another thread replaces it. */
#include "base/system.h"
#include "base/thread.h"
#include "jit/session/jit_internal.h"
#include "jit/session/llvm_exit.h"

#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <time.h>
#include <unistd.h>

#define MAX_THREADS 8
#define MAX_FAILED_THREADS 16
#define STACK_BYTES ((size_t)8 << 20)
#define EXIT_WAIT_SECONDS 5
#define MAX_BACKGROUND_JOBS 64
#define BACKGROUND_NICE 10
#define REST_MS 100

/* Jobs and the threads that run them. */
typedef struct job_queue {
  pthread_cond_t wake;
  ts_compile_job *first, **last;
  int threads, idle, queued; /* threads alive; waiting threads; jobs in the queue */
  int running;               /* jobs that threads took out of the queue and that have not ended */
} job_queue;

static struct {
  pthread_mutex_t lock;
  job_queue foreground, background;
  int in_llvm; /* threads that are inside LLVM now */
  int failed;
  bool exiting;        /* no thread may enter LLVM any more */
  pthread_cond_t left; /* in_llvm was decremented */
} pool = {.lock = PTHREAD_MUTEX_INITIALIZER,
          .foreground = {.wake = PTHREAD_COND_INITIALIZER},
          .background = {.wake = PTHREAD_COND_INITIALIZER},
          .left = PTHREAD_COND_INITIALIZER};

static _Atomic int injected;
static _Thread_local ts_compile_job *current;
static _Thread_local job_queue *served; /* the queue of this thread */

void ts_jit_inject_fatal(int count) { atomic_store(&injected, count); }

int64_t ts_compile_failed_threads(void) {
  pthread_mutex_lock(&pool.lock);
  int64_t failed = pool.failed;
  pthread_mutex_unlock(&pool.lock);
  return failed;
}

int64_t ts_compile_background_jobs(void) {
  pthread_mutex_lock(&pool.lock);
  int64_t jobs = pool.background.queued + pool.background.running;
  pthread_mutex_unlock(&pool.lock);
  return jobs;
}

/* At exit LLVM's global objects are destroyed, at least those made when it was loaded, so no thread may be in LLVM
 * then. Exit handlers run in reverse order of registration. This one is registered when our library is loaded, after
 * LLVM's, which registers none later (llvm_exit.h); the first compile would be too late, as the process may end during
 * it. An embedding that is told of the end before exit() begins calls this itself. */
void ts_jit_stop(void) {
  struct timespec deadline;
  pthread_mutex_lock(&pool.lock);
  bool again = pool.exiting;
  pthread_mutex_unlock(&pool.lock);
  if (again) return;
  clock_gettime(CLOCK_REALTIME, &deadline);
  deadline.tv_sec += EXIT_WAIT_SECONDS;
  pthread_mutex_lock(&pool.lock);
  pool.exiting = true;
  while (pool.in_llvm > 0 && pthread_cond_timedwait(&pool.left, &pool.lock, &deadline) == 0) {}
  pthread_mutex_unlock(&pool.lock);
}

__attribute__((constructor)) static void stop_at_exit(void) { ts_system_at_exit(ts_jit_stop); }

/* Both require the lock. enter_llvm does not return once the process exits. */
static void enter_llvm(void) {
  while (pool.exiting) pthread_cond_wait(&pool.left, &pool.lock);
  pool.in_llvm++;
}

static void leave_llvm(void) {
  pool.in_llvm--;
  pthread_cond_broadcast(&pool.left);
}

static int thread_limit(const job_queue *queue) {
  if (queue == &pool.background) return 1;
  int cpus = ts_system_cpus();
  return cpus > MAX_THREADS ? MAX_THREADS : cpus;
}

static void finish(ts_compile_job *job, ts_status status) {
  job->status = status;
  job->done(job);
}

static ts_status refusal(void) {
  return ts_error(TS_INTERNAL, "the compiler is off: LLVM had %d fatal errors in this process", MAX_FAILED_THREADS);
}

static void start_threads(job_queue *queue);

/* If no thread could be started: the jobs of the queue, which would never run. The lock is held. */
static ts_compile_job *take_stranded(job_queue *queue) {
  if (queue->threads > 0) return NULL;
  ts_compile_job *jobs = queue->first;
  queue->first = NULL;
  queue->last = NULL;
  queue->queued = 0;
  return jobs;
}

static void fail_stranded(ts_compile_job *job) {
  while (job) {
    ts_compile_job *next = job->next;
    finish(job, ts_error(TS_RESOURCE_EXHAUSTED, "cannot start a compile thread"));
    job = next;
  }
}

/* Called by LLVM, or by a test hook in its place. Returns only on threads that are not compile threads. */
static void on_fatal(const char *reason) {
  ts_compile_job *job = current;
  if (!job) return;
  current = NULL;
  ts_status status = ts_error(TS_INTERNAL, "fatal error of LLVM in kernel %s: %s", job->name, reason);
  pthread_mutex_lock(&pool.lock);
  served->threads--;
  served->running--;
  pool.failed++;
  leave_llvm();
  start_threads(served);
  ts_compile_job *stranded = take_stranded(served);
  pthread_mutex_unlock(&pool.lock);
  finish(job, status);
  fail_stranded(stranded);
  for (;;) pause();
}

static bool take_injection(void) {
  int left = atomic_load(&injected);
  while (left > 0 && !atomic_compare_exchange_weak(&injected, &left, left - 1)) {}
  return left > 0;
}

static ts_status run_job(ts_compiler **compiler, ts_compile_job *job) {
  if (!*compiler) TS_TRY(ts_compiler_create(ts_target_host(), compiler));
  if (take_injection()) on_fatal("injected by a test");
  return ts_compiler_run(*compiler, job->source, job->name, &job->object);
}

/* The lock is held, and released while the job runs. */
static void run_first(job_queue *queue, ts_compiler **compiler) {
  ts_compile_job *job = queue->first;
  queue->first = job->next;
  if (!queue->first) queue->last = NULL;
  queue->queued--;
  queue->running++;
  bool off = pool.failed >= MAX_FAILED_THREADS;
  enter_llvm();
  pthread_mutex_unlock(&pool.lock);
  int64_t start = ts_system_ns();
  current = job;
  ts_status status = off ? refusal() : run_job(compiler, job);
  current = NULL;
  job->nanoseconds = ts_system_ns() - start;
  finish(job, status);
  pthread_mutex_lock(&pool.lock);
  queue->running--;
  leave_llvm();
}

/* A pause before background work. The thread that submitted the work is still in a call, and may be waiting by
 * sched_yield(), as the BEAM's schedulers do: Linux would give this thread that CPU for a whole tick, 4 ms. */
static void rest(void) {
  struct timespec time = {.tv_nsec = REST_MS * 1000000L};
  nanosleep(&time, NULL);
}

/* The lock is held. */
static void wait_for_job(job_queue *queue) {
  while (!queue->first) {
    queue->idle++;
    pthread_cond_wait(&queue->wake, &pool.lock);
    queue->idle--;
    if (queue != &pool.background) continue;
    pthread_mutex_unlock(&pool.lock);
    rest();
    pthread_mutex_lock(&pool.lock);
  }
}

static void serve(job_queue *queue) {
  served = queue;
  ts_compiler *compiler = NULL;
  pthread_mutex_lock(&pool.lock);
  enter_llvm();
  pthread_mutex_unlock(&pool.lock);
  ts_status_free(ts_compiler_create(ts_target_host(), &compiler)); /* the first job reports a failure */
  pthread_mutex_lock(&pool.lock);
  leave_llvm();
  for (;;) {
    wait_for_job(queue);
    run_first(queue, &compiler);
  }
}

static void *foreground_thread(void *unused) {
  (void)unused;
  serve(&pool.foreground);
  return NULL;
}

/* On Linux each thread has a priority of its own. */
static void *background_thread(void *unused) {
  (void)unused;
  setpriority(PRIO_PROCESS, 0, BACKGROUND_NICE);
  rest();
  serve(&pool.background);
  return NULL;
}

static bool start_thread(void *(*body)(void *)) {
  static bool handlers_set;
  if (!handlers_set) {
    ts_compiler_set_fatal_handler(on_fatal);
    ts_llvm_keep_objects();
  }
  handlers_set = true;
  return ts_thread_start("tessera-jit", body, STACK_BYTES);
}

/* Starts a thread for each job that no idle thread can take; the lock is held. */
static void start_threads(job_queue *queue) {
  void *(*body)(void *) = queue == &pool.background ? background_thread : foreground_thread;
  int limit = thread_limit(queue);
  int wanted = queue->queued - queue->idle;
  for (; wanted > 0 && queue->threads < limit && start_thread(body); wanted--) queue->threads++;
}

/* The lock is held. */
static void append(job_queue *queue, ts_compile_job *job) {
  job->next = NULL;
  *(queue->last ? queue->last : &queue->first) = job;
  queue->last = &job->next;
  queue->queued++;
  start_threads(queue);
  pthread_cond_signal(&queue->wake);
}

static bool take_out(job_queue *queue, const ts_compile_job *job) {
  ts_compile_job *before = NULL;
  for (ts_compile_job *j = queue->first; j; before = j, j = j->next) {
    if (j != job) continue;
    *(before ? &before->next : &queue->first) = j->next;
    if (!j->next) queue->last = before ? &before->next : NULL;
    queue->queued--;
    return true;
  }
  return false;
}

void ts_compile_submit(ts_compile_job *job) {
  pthread_mutex_lock(&pool.lock);
  append(&pool.foreground, job);
  ts_compile_job *stranded = take_stranded(&pool.foreground);
  pthread_mutex_unlock(&pool.lock);
  fail_stranded(stranded);
}

bool ts_compile_withdraw(ts_compile_job *job) {
  pthread_mutex_lock(&pool.lock);
  bool taken = take_out(&pool.foreground, job);
  pthread_mutex_unlock(&pool.lock);
  return taken;
}

bool ts_compile_submit_background(ts_compile_job *job) {
  pthread_mutex_lock(&pool.lock);
  bool taken = pool.background.queued < MAX_BACKGROUND_JOBS;
  if (taken) {
    append(&pool.background, job);
    taken = pool.background.threads > 0 || !take_out(&pool.background, job);
  }
  pthread_mutex_unlock(&pool.lock);
  return taken;
}

void ts_compile_hurry(ts_compile_job *job) {
  pthread_mutex_lock(&pool.lock);
  if (pool.foreground.threads > 0 && take_out(&pool.background, job)) append(&pool.foreground, job);
  pthread_mutex_unlock(&pool.lock);
}
