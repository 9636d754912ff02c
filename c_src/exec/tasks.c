/* Splits a launch into tasks: several units each or, when units are few and long, a piece of a unit. All tasks run the
 * same code, so the bits do not depend on the split. A run can be cancelled between two tasks. */
#include "base/cancel.h"
#include "exec/pool.h"
#include "exec/steps.h"

/* A task shorter than this is not worth handing to another thread that is awake. Whether to wake one is measured
 * (exec/pace.h). */
#define TASK_NS 5000
/* The estimated time that a run may continue after it was cancelled. */
#define LONGEST_TASK_NS 5000000
/* Picoseconds for a byte in a cache, and for one in memory. */
#define CACHED_BYTE_PS 25
#define MEMORY_BYTE_PS 80
#define CACHED_BYTES (1 << 20)
/* A piece is a multiple of this many columns: whole cache lines, so that threads do not share any. */
#define PIECE_COLUMNS 1024
_Static_assert(PIECE_COLUMNS % TS_STREAM_STEP == 0, "a task of a MAP of rank 1 begins where its stores may stream");

static int64_t round_up_div(int64_t a, int64_t b) { return (a + b - 1) / b; }
static int64_t round_up(int64_t a, int64_t b) { return round_up_div(a, b) * b; }

static int64_t cost_ns(const ts_launch *launch, int64_t point_cost) {
  int64_t byte_ps = launch->bytes > CACHED_BYTES ? MEMORY_BYTE_PS : CACHED_BYTE_PS;
  return 30 + launch->points / 1000 * point_cost + launch->points % 1000 * point_cost / 1000 +
         launch->bytes / 1000 * byte_ps;
}

static int64_t count_tasks(int64_t cost) {
  int64_t width = ts_cpu_count(), tasks = cost / TASK_NS;
  if (tasks < 2 || width < 2) tasks = 1;
  if (tasks > 8 * width) tasks = 8 * width;
  return tasks < cost / LONGEST_TASK_NS ? cost / LONGEST_TASK_NS : tasks;
}

void ts_tasks_plan(ts_step_launch *l, int64_t point_cost_ps) {
  const ts_kernel_desc *d = &l->launch->desc;
  l->cost_ns = cost_ns(l->launch, point_cost_ps);
  int64_t units = l->launch->units, tasks = count_tasks(l->cost_ns),
          per = tasks < 1 ? units : round_up_div(units, tasks);
  if (d->kind == TS_KERNEL_MAP && d->rank == 1) per = round_up(per, PIECE_COLUMNS);
  if (per < 1) per = 1;
  l->units_per_task = per;
  l->pieces = 1;
  l->columns_per_piece = l->launch->args[d->rank - 1];
  if (units > 0 && tasks > units && ts_launch_has_pieces(l->launch)) {
    l->columns_per_piece = round_up(round_up_div(l->columns_per_piece, round_up_div(tasks, units)), PIECE_COLUMNS);
    l->pieces = round_up_div(l->launch->args[d->rank - 1], l->columns_per_piece);
  }
  l->tasks = round_up_div(units, per) * l->pieces;
}

typedef struct job {
  const ts_step_launch *launch;
  const int64_t *words;
  char *scratch;
  int64_t scratch_bytes;
  const _Atomic bool *cancel;
} job;

static void run_task(void *context, int64_t task, int worker) {
  const job *j = context;
  const ts_step_launch *l = j->launch;
  if (ts_cancelled(j->cancel)) return;
  char *scratch = j->scratch + worker * j->scratch_bytes;
  int64_t units = l->launch->units, begin = task / l->pieces * l->units_per_task, end = begin + l->units_per_task;
  if (end > units) end = units;
  ts_launch_piece piece = {begin, end, task % l->pieces * l->columns_per_piece, l->columns_per_piece};
  if (l->pieces == 1)
    l->entry(j->words, begin, end, scratch);
  else
    ts_launch_run_piece(l->launch, l->entry, j->words, &piece, scratch);
}

void ts_tasks_run(const ts_step_launch *l, const int64_t *words, char *scratch, int64_t scratch_bytes,
                  const ts_parallel *parallel, const _Atomic bool *cancel) {
  if (l->tasks <= 1) {
    if (l->launch->units > 0) l->entry(words, 0, l->launch->units, scratch);
    return;
  }
  job j = {l, words, scratch, scratch_bytes, cancel};
  ts_parallel_run(parallel, l->tasks, run_task, &j);
}
