/* The compile threads. Started one by one while jobs wait, up to the number of
 * CPUs, never ended. A thread in which LLVM had a fatal error reports it as its
 * job's result and sleeps for good, as LLVM may not be returned to; another takes its place. */
#include "jit/jit_internal.h"

#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

#define MAX_THREADS 8
#define MAX_FAILED_THREADS 16
#define STACK_BYTES ((size_t)8 << 20)
#define EXIT_WAIT_SECONDS 5

static struct {
  pthread_mutex_t lock;
  pthread_cond_t wake;
  ts_compile_job *first, **last;
  int threads, idle, queued; /* alive; of those waiting; jobs in the queue */
  int in_llvm;               /* threads that are inside LLVM now */
  int failed;
  bool exiting;              /* nobody may enter LLVM any more */
  pthread_cond_t left;       /* in_llvm went down */
} pool = {.lock = PTHREAD_MUTEX_INITIALIZER, .wake = PTHREAD_COND_INITIALIZER, .left = PTHREAD_COND_INITIALIZER};

static _Atomic int injected;
static _Thread_local ts_compile_job *current;

void ts_jit_inject_fatal(int count) { atomic_store(&injected, count); }

int64_t ts_compile_failed_threads(void) {
  pthread_mutex_lock(&pool.lock);
  int64_t failed = pool.failed;
  pthread_mutex_unlock(&pool.lock);
  return failed;
}

/* At exit LLVM's global objects are destroyed, under the feet of a thread that
 * is still inside. Registered after LLVM was loaded, so it runs before that. */
static void wait_for_llvm(void) {
  struct timespec deadline;
  clock_gettime(CLOCK_REALTIME, &deadline);
  deadline.tv_sec += EXIT_WAIT_SECONDS;
  pthread_mutex_lock(&pool.lock);
  pool.exiting = true;
  while (pool.in_llvm > 0 && pthread_cond_timedwait(&pool.left, &pool.lock, &deadline) == 0) {}
  pthread_mutex_unlock(&pool.lock);
}

/* Both with the lock held. enter_llvm does not return once the process exits. */
static void enter_llvm(void) {
  while (pool.exiting) pthread_cond_wait(&pool.wake, &pool.lock);
  pool.in_llvm++;
}

static void leave_llvm(void) {
  pool.in_llvm--;
  pthread_cond_broadcast(&pool.left);
}

static int thread_limit(void) {
  cpu_set_t set;
  int cpus = sched_getaffinity(0, sizeof(set), &set) == 0 ? CPU_COUNT(&set) : (int)sysconf(_SC_NPROCESSORS_ONLN);
  return cpus < 1 ? 1 : cpus > MAX_THREADS ? MAX_THREADS : cpus;
}

static void finish(ts_compile_job *job, ts_status status) {
  job->status = status;
  job->done(job);
}

static ts_status refusal(void) {
  return ts_error(TS_INTERNAL, "the compiler is off: LLVM had %d fatal errors in this process", MAX_FAILED_THREADS);
}

static void start_threads(void);

/* When no thread could be started, the jobs that nobody will ever take; the lock is held. */
static ts_compile_job *take_stranded(void) {
  if (pool.threads > 0) return NULL;
  ts_compile_job *jobs = pool.first;
  pool.first = NULL;
  pool.last = NULL;
  pool.queued = 0;
  return jobs;
}

static void fail_stranded(ts_compile_job *job) {
  while (job) {
    ts_compile_job *next = job->next;
    finish(job, ts_error(TS_RESOURCE_EXHAUSTED, "cannot start a compile thread"));
    job = next;
  }
}

/* Called by LLVM, or by us in its stead. Returns only on threads that are not ours. */
static void on_fatal(const char *reason) {
  ts_compile_job *job = current;
  if (!job) return;
  current = NULL;
  ts_status status = ts_error(TS_INTERNAL, "fatal error of LLVM in kernel %s: %s", job->name, reason);
  pthread_mutex_lock(&pool.lock);
  pool.threads--;
  pool.failed++;
  leave_llvm();
  start_threads();
  ts_compile_job *stranded = take_stranded();
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
  if (!*compiler) TS_TRY(ts_compiler_create(compiler));
  if (take_injection()) on_fatal("injected by a test");
  return ts_compiler_run(*compiler, job->source, job->name, &job->object);
}

/* The lock is held; gives it back for the time of the job. */
static void run_first(ts_compiler **compiler) {
  ts_compile_job *job = pool.first;
  pool.first = job->next;
  if (!pool.first) pool.last = NULL;
  pool.queued--;
  bool off = pool.failed >= MAX_FAILED_THREADS;
  enter_llvm();
  pthread_mutex_unlock(&pool.lock);
  int64_t start = ts_jit_clock();
  current = job;
  ts_status status = off ? refusal() : run_job(compiler, job);
  current = NULL;
  job->nanoseconds = ts_jit_clock() - start;
  finish(job, status);
  pthread_mutex_lock(&pool.lock);
  leave_llvm();
}

/* `warm_up` is a flag: any pointer but NULL. */
static void *compile_thread(void *warm_up) {
  pthread_setname_np(pthread_self(), "tessera-jit");
  ts_compiler *compiler = NULL;
  pthread_mutex_lock(&pool.lock);
  enter_llvm();
  pthread_mutex_unlock(&pool.lock);
  ts_status_free(ts_compiler_create(&compiler)); /* a failure shows again in the first job */
  if (compiler && warm_up) ts_compiler_warm_up(compiler);
  pthread_mutex_lock(&pool.lock);
  leave_llvm();
  for (;;) {
    while (!pool.first) {
      pool.idle++;
      pthread_cond_wait(&pool.wake, &pool.lock);
      pool.idle--;
    }
    run_first(&compiler);
  }
  return NULL;
}

/* With every signal blocked: they belong to the embedding's threads. */
static bool start_thread(bool warm_up) {
  static bool handlers_set;
  if (!handlers_set) {
    ts_compiler_set_fatal_handler(on_fatal);
    atexit(wait_for_llvm);
  }
  handlers_set = true;
  pthread_attr_t attributes;
  if (pthread_attr_init(&attributes) != 0) return false;
  sigset_t all, old;
  sigfillset(&all);
  pthread_attr_setdetachstate(&attributes, PTHREAD_CREATE_DETACHED);
  pthread_attr_setstacksize(&attributes, STACK_BYTES);
  pthread_sigmask(SIG_SETMASK, &all, &old);
  pthread_t thread;
  bool started = pthread_create(&thread, &attributes, compile_thread, warm_up ? &pool : NULL) == 0;
  pthread_sigmask(SIG_SETMASK, &old, NULL);
  pthread_attr_destroy(&attributes);
  return started;
}

/* As many as there are jobs that nobody will take; the lock is held. */
static void start_threads(void) {
  int limit = thread_limit();
  int wanted = pool.queued - pool.idle;
  for (; wanted > 0 && pool.threads < limit && start_thread(false); wanted--) pool.threads++;
}

void ts_compile_submit(ts_compile_job *job) {
  job->next = NULL;
  pthread_mutex_lock(&pool.lock);
  *(pool.last ? pool.last : &pool.first) = job;
  pool.last = &job->next;
  pool.queued++;
  start_threads();
  ts_compile_job *stranded = take_stranded();
  pthread_cond_signal(&pool.wake);
  pthread_mutex_unlock(&pool.lock);
  fail_stranded(stranded);
}

void ts_compile_warm_up(void) {
  pthread_mutex_lock(&pool.lock);
  if (pool.threads == 0 && start_thread(true)) pool.threads++;
  pthread_mutex_unlock(&pool.lock);
}
