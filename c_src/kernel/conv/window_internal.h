/* The common parts of windows' files: window.c plans, and folds over windows; window_scatter.c scatters. Thread-safe:
 * functions use only their arguments. */
#ifndef TS_KERNEL_WINDOW_INTERNAL_H
#define TS_KERNEL_WINDOW_INTERNAL_H

#include "base/cancel.h"
#include "kernel/conv/window_lanes.h"
#include "kernel/routine.h"

#include <stdatomic.h>

/* Approximate number of elements that a task reads. */
#define TASK_ELEMENTS (INT64_C(128) << 10)
/* Taps of all windows between two checks of the cancel flag: some milliseconds. */
#define CHECK_ELEMENTS (INT64_C(4) << 20)
/* With at most this number of taps of elements of four bytes, a scatter takes whole rows of windows. */
#define FEW_TAPS 16

typedef struct window_dim {
  int64_t n, size, stride, low, dilation, out;
  int64_t step; /* bytes from one element to the next */
} window_dim;

typedef struct window_state {
  ts_opcode op;
  ts_dtype type;
  int64_t size; /* bytes of an element */
  int32_t rank; /* of the outer dims */
  window_dim outer[TS_MAX_RANK], last;
  int64_t inner;
  int64_t interior, interior_end;         /* windows along `last` whose taps are all in bounds */
  int64_t row_interior, row_interior_end; /* the same along the last of `outer` */
  int64_t block_windows, block_rows;      /* of a block of short windows; without blocks 0 */
  int64_t rows, row_taps;                 /* of the outer dims: windows, and the most taps of one */
  int64_t taps;                           /* of one window, at most */
  int64_t elements;                       /* of the operand */
  ts_window_fold_fn fold;
  ts_window_pick_fn pick;
  ts_window_add_fn add;
  ts_window_scatter_fn scatter; /* NULL: by pick and add */
} window_state;

typedef struct window_run {
  const window_state *s;
  const char *in, *source;
  char *out, *workers;
  int64_t worker_bytes;
  int64_t row_step, last_step; /* of a task: rows, and windows along the last dim */
  int64_t columns;             /* of a task of a scatter: inner elements */
  int64_t last_tasks;          /* tasks of one row, or column tasks of one batch */
  bool streams;                /* stores of folds bypass the caches */
  const void *value;           /* the initial value of a scatter */
  bool fills;                  /* tasks of a scatter fill their batches with it */
  const _Atomic bool *cancel;
} window_run;

static inline int64_t min_of(int64_t a, int64_t b) { return a < b ? a : b; }
static inline int64_t ceil_div(int64_t a, int64_t b) { return (a + b - 1) / b; }

static inline bool is_interior(const window_state *s, int64_t o) { return o >= s->interior && o < s->interior_end; }
static inline const char **worker_rows(const window_run *run, int worker) {
  return (const char **)(void *)(run->workers + worker * run->worker_bytes);
}

/* The rows that the windows of one index of the outer dims read. Returns how many there are. */
int64_t ts_window_find_rows(const window_state *s, int64_t row, const char *in, const char **out);

/* The taps of window o along the last dim; taps of all interior windows have the same distances. */
void ts_window_set_taps(const window_state *s, int64_t o, ts_window_taps *taps);

/* The whole result is the initial value. */
void ts_window_fill(window_run *run, const ts_parallel *parallel);
/* Fills the result, and adds the source's elements to the elements that windows select. */
void ts_window_scatter(window_run *run, const ts_parallel *parallel);

#endif
