/* The interface of a thread pool for routines, which keeps them independent of the pool itself (exec/pool.h provides
 * it; tests use the serial one). */
#ifndef TS_BASE_PARALLEL_H
#define TS_BASE_PARALLEL_H

#include <stdint.h>

/* `worker` is in [0, width): no two tasks with the same worker run at once. */
typedef void (*ts_task_fn)(void *arg, int64_t task, int worker);

typedef struct ts_parallel {
  void *context;
  int width; /* how many tasks may run at once, >= 1 */
  /* Runs tasks 0 .. tasks-1 and returns when all are done. May be called from many threads at once. */
  void (*run)(const struct ts_parallel *self, int64_t tasks, ts_task_fn fn, void *arg);
} ts_parallel;

/* Runs all tasks on the calling thread. */
extern const ts_parallel ts_parallel_serial;

static inline void ts_parallel_run(const ts_parallel *p, int64_t tasks, ts_task_fn fn, void *arg) {
  p->run(p, tasks, fn, arg);
}

#endif
