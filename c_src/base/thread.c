#include "base/thread.h"

#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <unistd.h>

static bool start(const pthread_attr_t *attributes, const char *name, void *(*body)(void *)) {
  char cut[16];
  sigset_t all, old;
  pthread_t thread;
  sigfillset(&all);
  pthread_sigmask(SIG_SETMASK, &all, &old);
  bool started = pthread_create(&thread, attributes, body, NULL) == 0;
  pthread_sigmask(SIG_SETMASK, &old, NULL);
  (void)snprintf(cut, sizeof cut, "%s", name);
  if (started) pthread_setname_np(thread, cut);
  return started;
}

bool ts_thread_start(const char *name, void *(*body)(void *), size_t stack_bytes) {
  pthread_attr_t attributes;
  if (pthread_attr_init(&attributes) != 0) return false;
  pthread_attr_setdetachstate(&attributes, PTHREAD_CREATE_DETACHED);
  if (stack_bytes) pthread_attr_setstacksize(&attributes, stack_bytes);
  bool started = start(&attributes, name, body);
  pthread_attr_destroy(&attributes);
  return started;
}

static void move_away(pid_t thread, int cpu) {
  cpu_set_t allowed, others;
  if (cpu < 0 || sched_getaffinity(thread, sizeof allowed, &allowed) != 0) return;
  others = allowed;
  CPU_CLR(cpu, &others); /* nothing where there are more CPUs than a set has */
  if (CPU_EQUAL(&others, &allowed) || CPU_COUNT(&others) == 0) return;
  if (sched_setaffinity(thread, sizeof others, &others) == 0) sched_setaffinity(thread, sizeof allowed, &allowed);
}

void ts_thread_move_away(pid_t thread) {
  /* One at a time: whoever read the mask that another has just narrowed would narrow it for good. */
  static atomic_flag busy = ATOMIC_FLAG_INIT;
  if (atomic_flag_test_and_set_explicit(&busy, memory_order_acquire)) return;
  move_away(thread, sched_getcpu());
  atomic_flag_clear_explicit(&busy, memory_order_release);
}

void ts_thread_set_enter(ts_thread_set *set) {
  int place = atomic_fetch_add(&set->entered, 1);
  if (place < TS_THREAD_SET_MOST) atomic_store(&set->threads[place], gettid());
}

void ts_thread_set_move_away(ts_thread_set *set) {
  for (int i = 0; i < TS_THREAD_SET_MOST; i++) {
    pid_t thread = atomic_load_explicit(&set->threads[i], memory_order_relaxed);
    if (thread) ts_thread_move_away(thread);
  }
}
