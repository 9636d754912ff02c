/* Depthwise convolution: channels are in the lanes of vectors. Neighbouring points of a row of outputs share the loads
 * of weights, and of operand elements (kernel/conv/window_strips.h). An operand that is dilated along the last dim has
 * padding between its elements, so each tap is found by itself. */
#include "kernel/conv/conv_internal.h"

/* The fewest and the most elements that a task reads, about. Between them each thread has a few tasks, no more than
 * share the work well: a line that two tasks read, above or below their own, comes from another core's caches. */
#define TASK_ELEMENTS (INT64_C(128) << 10)
#define MOST_TASK_ELEMENTS (INT64_C(2) << 20)
#define TASKS_PER_THREAD 8

static const conv_dim *last_dim(const conv_state *s) { return &s->dims[s->rank - 1]; }

static bool has_strips(const conv_state *s) { return last_dim(s)->input_dilation == 1; }

/* Rows of taps: taps that differ in the last dim only. */
static int64_t count_lines(const conv_state *s) { return last_dim(s)->kernel > 0 ? s->taps / last_dim(s)->kernel : 0; }

int64_t ts_conv_depthwise_bytes(const conv_state *s) {
  int64_t addresses = has_strips(s) ? count_lines(s) + 1 : s->taps * TS_WINDOW_DOTS;
  if (last_dim(s)->kernel == 0) addresses = 0;
  return (addresses * (int64_t)sizeof(char *) + 64) / 64 * 64;
}

static const char **worker_addresses(const conv_run *run, int worker) {
  return (const char **)(void *)(run->workers + worker * run->worker_bytes);
}

static ts_window_weights get_weights(const conv_run *run) {
  return (ts_window_weights){run->kernel, run->s->taps, run->s->channels};
}

/* ---- strips */

/* The line that each row of taps reads for one row of outputs; NULL: padding. */
static void find_lines(const conv_run *run, int64_t row, const char **out) {
  const conv_state *s = run->s;
  int64_t first[CONV_SPATIAL], lines = count_lines(s);
  for (int32_t d = s->rank - 2; d >= 0; d--) {
    first[d] = row % s->dims[d].out * s->dims[d].stride - s->dims[d].low;
    row /= s->dims[d].out;
  }
  for (int64_t r = 0; r < lines; r++) {
    const int64_t *distance = s->distances + r * last_dim(s)->kernel * s->rank;
    int64_t bytes = ts_conv_element_bytes(s, s->rank - 1, first, distance);
    out[r] = bytes < 0 ? NULL : run->x + row * s->batch_bytes + bytes;
  }
}

/* True if the row after a row of outputs reads the same lines but the first, and one more. */
static bool has_pairs(const conv_state *s) {
  const conv_dim *d = s->rank > 1 ? last_dim(s) - 1 : NULL;
  bool moves_by_one = d && d->stride == 1 && d->kernel_dilation == 1 && d->input_dilation == 1;
  return moves_by_one && d->kernel == count_lines(s);
}

/* How many rows are computed together from this one on; 0: it is computed with the previous one. The number does not
 * depend on tasks, since two ways to compute a row may choose different NaNs. */
static int count_rows(const conv_state *s, int64_t row) {
  if (!has_pairs(s)) return 1;
  int64_t out = last_dim(s)[-1].out, at = row % out;
  return at % 2 == 1 ? 0 : at + 1 < out ? 2 : 1;
}

/* Points [from, end) of a row of outputs, or of two. */
static void run_strip(const conv_run *run, int64_t row, bool two, int64_t from, int64_t end, const char **lines) {
  const conv_state *s = run->s;
  const conv_dim *d = last_dim(s);
  const ts_window_weights weights = get_weights(run);
  find_lines(run, row, lines);
  if (two) find_lines(run, row + 1, lines + 1);
  const ts_window_strip strip = {.lines = lines,
                                 .line_count = count_lines(s),
                                 .line_taps = d->kernel,
                                 .n = d->n,
                                 .first = from * d->stride - d->low,
                                 .stride = d->stride,
                                 .dilation = d->kernel_dilation,
                                 .weights = &weights,
                                 .pair = two ? d->out * s->channels : 0,
                                 .streams = run->streams};
  s->strip(&strip, end - from, run->out + (row * d->out + from) * s->channels * s->size);
}

static void strip_task(void *arg, int64_t task, int worker) {
  const conv_run *run = arg;
  const conv_state *s = run->s;
  int64_t out = last_dim(s)->out, from = task % run->pieces * run->points, row = task / run->pieces * run->step;
  int64_t end = conv_min(row + run->step, s->batch * (s->outputs / out));
  for (; row < end && !ts_cancelled(run->cancel); row++) {
    int rows = count_rows(s, row);
    if (rows > 0)
      run_strip(run, row, rows == 2, from, conv_min(from + run->points, out), worker_addresses(run, worker));
  }
}

/* Stores bypass the caches if operand and result are larger than this: lines need not be read before they are written.
 * Measured: 12.8 MB each take 0.6 ms instead of 1. */
#define STREAM_BYTES (INT64_C(24) << 20)

static bool may_stream(const conv_run *run) {
  const conv_state *s = run->s;
  int64_t point_bytes = s->channels * s->size, bytes = s->batch * (s->batch_bytes + s->outputs * point_bytes);
  return bytes >= STREAM_BYTES && point_bytes % 64 == 0 && (uintptr_t)run->out % 64 == 0;
}

/* Returns the number of tasks. */
static int64_t plan_strips(conv_run *run, int64_t points) {
  const conv_state *s = run->s;
  int64_t out = last_dim(s)->out;
  run->streams = may_stream(run);
  run->points = conv_min(points, out);
  run->pieces = conv_ceil_div(out, run->points);
  run->step = points / out > 0 ? points / out : 1;
  return conv_ceil_div(s->batch * (s->outputs / out), run->step) * run->pieces;
}

/* ---- tap by tap */

static void dots_task(void *arg, int64_t task, int worker) {
  const conv_run *run = arg;
  const conv_state *s = run->s;
  const ts_window_weights weights = get_weights(run);
  const char **addresses = worker_addresses(run, worker);
  int64_t end = conv_min((task + 1) * run->step, s->batch * s->outputs), count;
  for (int64_t row = task * run->step; row < end && !ts_cancelled(run->cancel); row += count) {
    conv_rows r;
    count = conv_min(end - row, TS_WINDOW_DOTS);
    ts_conv_start_rows(run, 0, row, count, &r);
    for (int64_t t = 0; t < s->taps; t++)
      for (int64_t u = 0; u < count; u++) addresses[t * TS_WINDOW_DOTS + u] = ts_conv_find_row(s, &r, u, t, 0);
    s->dot(addresses, (int)count, &weights, run->out + row * s->channels * s->size);
  }
}

/* The output points of a task. */
static int64_t count_points(const conv_state *s, int width) {
  int64_t reads = s->channels * (s->taps > 0 ? s->taps : 1);
  int64_t points = conv_ceil_div(s->batch * s->outputs, TASKS_PER_THREAD * (int64_t)width);
  points = conv_min(points, conv_ceil_div(MOST_TASK_ELEMENTS, reads));
  return conv_max(points, conv_ceil_div(TASK_ELEMENTS, reads));
}

void ts_conv_run_depthwise(conv_run *run, const ts_parallel *parallel) {
  const conv_state *s = run->s;
  int64_t points = count_points(s, parallel->width);
  run->step = points;
  int64_t tasks = has_strips(s) ? plan_strips(run, points) : conv_ceil_div(s->batch * s->outputs, points);
  ts_parallel_run(tasks == 1 ? &ts_parallel_serial : parallel, tasks, has_strips(s) ? strip_task : dots_task, run);
}
