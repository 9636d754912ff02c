#include "base/parallel.h"

#include <stddef.h>

static void run_serial(const ts_parallel *self, int64_t tasks, ts_task_fn fn, void *arg) {
  (void)self;
  for (int64_t task = 0; task < tasks; task++) fn(arg, task, 0);
}

const ts_parallel ts_parallel_serial = {.context = NULL, .width = 1, .run = run_serial};
