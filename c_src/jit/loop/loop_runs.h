/* Loops over many short rows, whose own work is a few instructions: so the addresses of a row are those of the row
 * before plus a stride each. Used by one emission on one compile thread. */
#ifndef TS_JIT_LOOP_RUNS_H
#define TS_JIT_LOOP_RUNS_H

#include "jit/loop/loop_body.h"

/* Emits `count` rows, one or more, of a run: bases are those of its first row. */
typedef void (*ts_run_fn)(void *context, ts_loop *loop, ts_v count);
/* Emits a row: bases are set. */
typedef void (*ts_run_row_fn)(void *context, ts_loop *loop);

/* All rows of a kernel of rank 2 and more. A run is of rows that differ along the innermost loop over rows. */
void ts_loop_runs(ts_loop *loop, ts_run_fn fn, void *context);
/* The rows of a run. The bases are afterwards those of its first row again. */
void ts_loop_run_rows(ts_loop *loop, ts_v count, ts_run_row_fn fn, void *context);

#endif
