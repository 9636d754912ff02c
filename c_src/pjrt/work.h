/* Threads of the client, and events of plugins. A plugin may compute on the calling thread, and blocks it while it
 * compiles or loads. So only functions that destroy small objects are called directly. The client's threads call all
 * other functions of a plugin. They have large stacks. Thread-safe. */
#ifndef TS_PJRT_WORK_H
#define TS_PJRT_WORK_H

#include "pjrt/plugin.h"

typedef struct pj_job {
  struct pj_job *next;
  void (*body)(struct pj_job *job); /* may free the job */
} pj_job;

/* There is a thread from then on. */
ts_status pj_work_start(void);
/* Runs the body on a thread of the client. Bodies begin in the order of the calls. The caller has called
 * pj_work_start() with success. */
void pj_work(pj_job *job);
/* Changes the number of threads by `count`. A plugin may hold some beyond a deadline; others take their place. */
void pj_work_spare(int count);

/* The end of an event, in memory of the caller's that is part of a job. */
typedef struct pj_wait {
  pj_job job;
  const pj_plugin *plugin;
  pj_event *event;
  pj_error *error;
  const char *what; /* for the error's message */
  _Atomic int parts;
  void (*then)(struct pj_wait *wait, ts_status status); /* may free the wait */
} pj_wait;

/* Takes the event over, and calls `then` once: now, or on a thread of the client when the event is ready. NULL: now. */
void pj_await(const pj_plugin *plugin, pj_event *event, pj_wait *wait);
/* The same for an event that may have no end for long: no thread waits for it. Where the plugin cannot say when it
 * ends, it is an error, and the caller keeps the event. */
ts_status pj_watch(const pj_plugin *plugin, pj_event *event, pj_wait *wait);

#endif
