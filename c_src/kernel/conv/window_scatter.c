/* Scatters of sources to the elements that windows select. An element gets the sum of the initial value and of the
 * sources of its windows, in the order of windows, for any number of threads and any instruction set. */
#include "kernel/conv/window_internal.h"

#include <string.h>

/* Minimum of inner elements for a task. */
#define MIN_COLUMNS 64
/* Inner elements that all windows of a row have at once. */
#define MOST_COLUMNS 4096

/* ---- the initial value of a scatter */

#define FILL_ELEMENTS (INT64_C(256) << 10)

static void fill_bytes(const window_run *run, char *to, int64_t bytes) {
  const char *value = run->value;
  const int64_t size = run->s->size;
  if (bytes <= 0) return;
  if (memcmp(value, value + 1, (size_t)size - 1) == 0) {
    memset(to, *value, (size_t)bytes);
    return;
  }
  memcpy(to, value, (size_t)size);
  for (int64_t done = size; done < bytes; done *= 2) memcpy(to + done, to, (size_t)min_of(done, bytes - done));
}

static void fill_task(void *arg, int64_t task, int worker) {
  const window_run *run = arg;
  int64_t first = task * FILL_ELEMENTS, count = min_of(FILL_ELEMENTS, run->s->elements - first);
  (void)worker;
  if (!ts_cancelled(run->cancel)) fill_bytes(run, run->out + first * run->s->size, count * run->s->size);
}

void ts_window_fill(window_run *run, const ts_parallel *parallel) {
  ts_parallel_run(parallel, ceil_div(run->s->elements, FILL_ELEMENTS), fill_task, run);
}

/* Fills the result from `filled` up to the end of the last line that a row of windows adds to, so that these lines are
 * in the caches at that time. Returns the end. */
static char *fill_lines(const window_run *run, const ts_window_taps *taps, char *filled) {
  const int64_t bytes = run->s->last.n * run->s->inner * run->s->size;
  char *end = filled;
  for (int64_t r = 0; r < taps->row_count; r++) {
    char *line_end = run->out + (taps->rows[r] - run->in) + bytes;
    if (line_end > end) end = line_end;
  }
  fill_bytes(run, filled, end - filled);
  return end;
}

/* ---- scatter */

/* `count` windows whose elements are `stride` apart. */
static void scatter_some(const window_run *run, ts_window_taps *taps, const char *source, int64_t stride,
                         int64_t count) {
  int32_t best[TS_WINDOW_PICKS + TS_WINDOW_SLACK];
  int64_t count_taps = taps->row_count * taps->steps, size = run->s->size;
  const int64_t most = min_of(TS_WINDOW_PICKS, CHECK_ELEMENTS / (count_taps + 1) + 1);
  for (int64_t i = 0; count_taps > 0 && i < count && !ts_cancelled(run->cancel); i += most) {
    int64_t n = min_of(most, count - i);
    if (i > 0) taps->offset += most * stride * size;
    run->s->pick(taps, stride, n, best);
    run->s->add(taps, run->out - run->in, stride, source + i * size, best, n);
  }
}

/* `count` interior windows of a row, of `columns` inner elements each. Many columns take turns, between which the
 * cancel flag is checked. */
static void scatter_lines(const window_run *run, ts_window_taps *taps, int64_t count, int64_t columns,
                          const char *source) {
  const window_state *s = run->s;
  const int64_t first = taps->offset, out = run->out - run->in;
  const int64_t step = count > 1 ? s->last.stride * s->last.step : 0; /* the stride of one window may be of any size */
  const int64_t source_step = s->inner * s->size;
  const int64_t most = CHECK_ELEMENTS / (FEW_TAPS * min_of(columns, MOST_COLUMNS)) + 1;
  for (int64_t i = 0; i < columns; i += MOST_COLUMNS)
    for (int64_t o = 0; o < count && !ts_cancelled(run->cancel); o += most) {
      const ts_window_line line = {.count = min_of(most, count - o),
                                   .columns = min_of(MOST_COLUMNS, columns - i),
                                   .step = step,
                                   .source_step = source_step,
                                   .out = out,
                                   .source = source + o * source_step + i * s->size};
      taps->offset = first + o * step + i * s->size;
      s->scatter(taps, &line);
    }
}

static void scatter_row(const window_run *run, ts_window_taps *taps, int64_t column, int64_t columns,
                        const char *source) {
  const window_state *s = run->s;
  for (int64_t o = 0; o < s->last.out;) {
    const bool inside = is_interior(s, o), lines = inside && s->scatter;
    const int64_t count = inside && (lines || s->inner == 1) ? s->interior_end - o : 1;
    const char *from = source + (o * s->inner + column) * s->size;
    ts_window_set_taps(s, o, taps);
    taps->offset += column * s->size;
    if (lines)
      scatter_lines(run, taps, count, columns, from);
    else
      scatter_some(run, taps, from, inside && s->inner == 1 ? s->last.stride : 1, s->inner == 1 ? count : columns);
    o += count;
  }
}

/* Tasks are batches (the first outer dim, if no window spans it) and columns of the inner elements. */
static int64_t count_batches(const window_state *s) {
  const window_dim *d = &s->outer[0];
  return s->rank > 0 && d->size == 1 && d->stride == 1 && d->low == 0 && d->out == d->n ? d->n : 1;
}

static void scatter_task(void *arg, int64_t task, int worker) {
  const window_run *run = arg;
  const window_state *s = run->s;
  const char **rows = worker_rows(run, worker);
  int64_t column = task % run->last_tasks * run->columns, columns = min_of(run->columns, s->inner - column);
  int64_t batch = task / run->last_tasks, first = batch * run->row_step;
  int64_t bytes = s->elements / (s->rows / run->row_step) * s->size;
  char *filled = run->out + batch * bytes, *end = filled + bytes;
  for (int64_t row = first; row < first + run->row_step && !ts_cancelled(run->cancel); row++) {
    ts_window_taps taps = {.rows = rows, .row_count = ts_window_find_rows(s, row, run->in, rows)};
    if (run->fills) filled = fill_lines(run, &taps, filled);
    scatter_row(run, &taps, column, columns, run->source + row * s->last.out * s->inner * s->size);
  }
  if (run->fills) fill_bytes(run, filled, end - filled);
}

void ts_window_scatter(window_run *run, const ts_parallel *parallel) {
  const window_state *s = run->s;
  int64_t batches = count_batches(s), wanted = ceil_div(2 * (int64_t)parallel->width, batches);
  int64_t chunks = min_of(wanted, s->inner / MIN_COLUMNS);
  run->columns = chunks > 1 ? ceil_div(s->inner, chunks) : s->inner;
  run->last_tasks = ceil_div(s->inner, run->columns);
  run->row_step = s->rows / batches;
  int64_t tasks = batches * run->last_tasks;
  bool small = s->elements < TASK_ELEMENTS / s->taps;
  run->fills = run->last_tasks == 1 && (small || batches >= parallel->width);
  if (!run->fills) ts_window_fill(run, parallel);
  ts_parallel_run(small ? &ts_parallel_serial : parallel, tasks, scatter_task, run);
}
