#include "base/thread.h"

#include <pthread.h>
#include <signal.h>
#include <stdio.h>

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
