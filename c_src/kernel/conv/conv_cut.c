/* How a direct convolution is cut into tasks: rows of outputs, or points where there is a single row, and features. The
 * times of cuts are estimated, since tasks of equal length should be as many as threads, or a few times as many; and
 * tasks of few rows copy more lines twice. */
#include "kernel/conv/conv_internal.h"
#include "kernel/gemm/gemm_internal.h"

/* The time to copy the elements of a vector, and to bring them from the third cache, in multiply-adds of vectors. */
#define COPY_TIME 12
#define FETCH_TIME 2
/* The time until the first results of a point are there, which lie behind one another. */
#define POINT_TIME 128
/* Others wait for the last task, on average for such a part of it. */
#define WAIT_SHARE 16

/* Tasks of a thread, at most, beside those that its memory needs. */
#define TASKS_PER_WORKER 4

/* Of rows, or of points where there is a single row. */
typedef struct conv_cut {
  int64_t pieces, parts; /* of an element of the batch, of the features */
  double time;
} conv_cut;

/* The most points of a piece: of each of its rows. */
static int64_t count_piece_points(const conv_direct *d, int64_t pieces) {
  return conv_is_cut(d) ? conv_ceil_div(d->x.out, pieces) : d->x.out;
}

/* The time of a task, in multiply-adds of vectors. */
static double task_time(const conv_state *s, const conv_cut *cut) {
  const conv_direct *d = &s->direct;
  const ts_gemm_geometry *g = &s->gemm->geometry;
  const int64_t rows = conv_is_cut(d) ? 1 : conv_ceil_div(d->y.out, cut->pieces);
  const int64_t points = count_piece_points(d, cut->pieces), of_phase = conv_max(1, points / d->along_x.count);
  const int64_t panels = conv_ceil_div(ts_conv_count_panels(s), cut->parts);
  const double line = (double)(conv_count_wide(&d->along_x, points) * s->channels) / g->lanes;
  const double weights = (double)(panels * g->vectors * s->shape.k) / (double)conv_count_phases(d);
  const double computed = (double)(rows * d->along_x.count * conv_count_computed(d, g, of_phase));
  double time = computed * (weights + POINT_TIME);
  time += (double)conv_count_lines(d, rows) * line * (d->copies ? COPY_TIME : FETCH_TIME);
  const bool stays = ts_conv_count_panels(s) * s->shape.k * g->vectors * 64 <= ts_target_host()->l2_bytes / 2;
  return time + (stays ? 0 : weights * FETCH_TIME);
}

/* Sets the time of all tasks. */
static void estimate(const conv_state *s, int64_t width, conv_cut *cut) {
  const int64_t tasks = s->direct.batch * cut->pieces * cut->parts;
  cut->time = task_time(s, cut) * ((double)conv_ceil_div(tasks, width) + 1.0 / WAIT_SHARE);
}

/* The least pieces by the memory of a task, and the most that are worth a task. */
static void limit_pieces(const conv_state *s, int64_t *out_least, int64_t *out_most) {
  const conv_direct *d = &s->direct;
  const int64_t points = CONV_PIECE_TILES * s->gemm->geometry.rows[0];
  *out_least = conv_is_cut(d) ? conv_ceil_div(d->x.out, d->points) : conv_ceil_div(d->y.out, d->rows);
  *out_most =
      conv_is_cut(d) ? d->x.out / points : d->y.out / (d->panels ? conv_ceil_div(CONV_PANEL_POINTS, d->x.out) : 1);
  *out_most = conv_max(*out_least, *out_most);
}

/* Rows are cut in equal pieces, of which some may be left over. */
static int64_t even_pieces(const conv_direct *d, int64_t pieces) {
  return conv_is_cut(d) ? pieces : conv_ceil_div(d->y.out, conv_ceil_div(d->y.out, pieces));
}

/* The cut that takes the least time: threads end together, and the tasks copy few lines twice. Epilogues of whole rows
 * need all features. */
static conv_cut choose_cut(const conv_run *run, int64_t width) {
  const conv_state *s = run->s;
  const conv_direct *d = &s->direct;
  const bool whole = !d->panels || (run->epilogue && run->epilogue->whole_rows);
  const int64_t most_parts = whole || width == 1 ? 1 : conv_min(ts_conv_count_panels(s), width * TASKS_PER_WORKER);
  int64_t least, most;
  limit_pieces(s, &least, &most);
  conv_cut best = {.pieces = even_pieces(d, least), .parts = 1};
  estimate(s, width, &best);
  for (int64_t parts = 1; parts <= most_parts && width > 1; parts *= 2) {
    const int64_t first = conv_ceil_div(least * parts * d->batch, width);
    for (int64_t turns = first; turns < first + TASKS_PER_WORKER; turns++) {
      const int64_t wanted = conv_min(most, conv_max(least, turns * width / (parts * d->batch)));
      conv_cut cut = {.pieces = even_pieces(d, wanted), .parts = parts};
      estimate(s, width, &cut);
      if (cut.time < best.time) best = cut;
    }
  }
  return best;
}

void ts_conv_cut(conv_run *run, int width) {
  const conv_direct *d = &run->s->direct;
  const conv_cut cut = choose_cut(run, width);
  run->pieces = conv_is_cut(d) ? 1 : cut.pieces;
  run->step = conv_ceil_div(d->y.out, run->pieces);
  run->points = conv_is_cut(d) ? cut.pieces : 1;
  run->parts = cut.parts;
}
