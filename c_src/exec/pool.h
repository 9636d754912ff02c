/* The process's pool of worker threads, sized from affinity and the cgroup's quota. A caller executes its own tasks as
 * worker 0; idle workers help, so any number of callers may run at once and none waits for a thread. Thread-safe. The
 * threads start with the first parallel run. */
#ifndef TS_EXEC_POOL_H
#define TS_EXEC_POOL_H

#include "base/parallel.h"

#include <stdbool.h>

/* Cores that this process may use, >= 1. */
int ts_cpu_count(void);
/* The shared pool limited to `threads` (0: all). Constant objects that are never freed. */
const ts_parallel *ts_pool_parallel(int threads);
/* Whether a job of the shared pool for `threads` (0: all) would find all of its workers awake. They spin for a short
 * time after their last job. */
bool ts_pool_is_awake(int threads);
/* How many jobs the calling thread has given to workers. */
uint64_t ts_pool_given(void);
/* The same on other threads, for the parts of a plugin's call: they may take any time. */
const ts_parallel *ts_pool_away(int threads);

#endif
