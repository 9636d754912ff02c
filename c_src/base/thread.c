#include "base/thread.h"

#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <unistd.h>

/* Starts a thread, detached unless `out` is given. */
static bool start(const char *name, void *(*body)(void *), void *context, size_t stack_bytes, pthread_t *out) {
  char cut[16];
  sigset_t all, old;
  pthread_t thread;
  pthread_attr_t attributes;
  if (pthread_attr_init(&attributes) != 0) return false;
  if (stack_bytes) pthread_attr_setstacksize(&attributes, stack_bytes);
  sigfillset(&all);
  sigdelset(&all, SIGBUS); /* the kernel ends a process that blocks its own fault: mapped_file.h */
  pthread_sigmask(SIG_SETMASK, &all, &old);
  bool started = pthread_create(&thread, &attributes, body, context) == 0;
  pthread_sigmask(SIG_SETMASK, &old, NULL);
  pthread_attr_destroy(&attributes);
  (void)snprintf(cut, sizeof cut, "%s", name);
  if (started) pthread_setname_np(thread, cut); /* it may have ended, so it is detached only now */
  if (started && !out) pthread_detach(thread);
  if (started && out) *out = thread;
  return started;
}

bool ts_thread_start(const char *name, void *(*body)(void *), size_t stack_bytes) {
  return start(name, body, NULL, stack_bytes, NULL);
}

bool ts_thread_start_with(const char *name, void *(*body)(void *), void *context, size_t stack_bytes) {
  return start(name, body, context, stack_bytes, NULL);
}

bool ts_thread_run(const char *name, void *(*body)(void *), void *context, size_t stack_bytes) {
  pthread_t thread;
  return start(name, body, context, stack_bytes, &thread) && pthread_join(thread, NULL) == 0;
}

void ts_threads_run(const char *name, void *(*body)(void *), void *context, int more) {
  pthread_t other;
  bool started = more > 0 && start(name, body, context, 0, &other);
  if (started)
    ts_threads_run(name, body, context, more - 1);
  else
    body(context);
  if (started) pthread_join(other, NULL);
}

static void move_away(pid_t thread, int cpu) {
  cpu_set_t allowed, others;
  if (cpu < 0 || sched_getaffinity(thread, sizeof allowed, &allowed) != 0) return;
  others = allowed;
  CPU_CLR(cpu, &others); /* has no effect where the machine has more CPUs than a set */
  if (CPU_EQUAL(&others, &allowed) || CPU_COUNT(&others) == 0) return;
  if (sched_setaffinity(thread, sizeof others, &others) == 0) sched_setaffinity(thread, sizeof allowed, &allowed);
}

void ts_thread_move_away(pid_t thread) {
  /* One at a time: a second caller could read the mask while the first one has it narrowed, and restore that one. */
  static atomic_flag busy = ATOMIC_FLAG_INIT;
  if (atomic_flag_test_and_set_explicit(&busy, memory_order_acquire)) return;
  move_away(thread, sched_getcpu());
  atomic_flag_clear_explicit(&busy, memory_order_release);
}
