/* Convolutions whose taps are read from the operand, without packed rows. Neighbouring points of a row of outputs are
 * at equal distances in the operand, and the taps of one line are contiguous. So a tile of a product reads its rows
 * from the lines themselves. With padding, a task first copies its lines and adds the padding; that moves each element
 * once, while packing moves it once for each tap. A kernel that is too large for L2 is packed in panels
 * (conv_panels.c). Without taps beside the point itself, all points are one row. An operand that is dilated has zeros
 * between its elements: the points of a phase share the taps that meet elements, and only these are computed
 * (conv_phases.c). */
#include "kernel/conv/conv_internal.h"
#include "kernel/gemm/gemm_internal.h"

#include <fenv.h>
#include <string.h>

/* Fewer multiplications stay on one thread. */
#define PARALLEL_MIN (768 << 10)
/* Bytes of results to finish together: enough to amortize the calls, few enough for L1. */
#define FINISH_BYTES (24 << 10)

/* A row of lhs is packed in the time of this many features. */
#define PACK_FEATURES 12

/* Terms of all points of a strip, for one feature, at least. */
#define STRIP_TERMS 768

/* With a single tap, a packed row of lhs has no element twice: packing costs little where there are many features. */
#define SINGLE_TAP_SHARE 4

/* ---- the plan */

static bool is_inside(const conv_dim *d, const conv_phases *p) {
  return p->first >= 0 && p->first + conv_count_wide(p, d->out) <= d->n;
}

/* The most rows whose lines are a quarter of L2; 0 when one row's are more. */
static int64_t plan_rows(const conv_direct *d) {
  double most = (double)ts_target_host()->l2_bytes / 4 / (double)d->line_bytes, one = (double)d->along_y.span;
  if (one > most) return 0;
  double rows = 1 + (most - one) / (double)d->along_y.stride * (double)d->along_y.count;
  while (rows > 1 && (double)conv_count_lines(d, (int64_t)rows) > most) rows--;
  return conv_min(d->y.out, (int64_t)rows);
}

/* The most points of a single row whose elements are a quarter of L2; 0 when those of a few tiles are more. */
static int64_t plan_points(const conv_state *s, const ts_gemm_geometry *g) {
  const conv_direct *d = &s->direct;
  const int64_t bytes = d->along_y.span * s->channels * s->size;
  const int64_t most = ts_target_host()->l2_bytes / 4 / bytes - d->along_x.span;
  const int64_t points = most < 0 ? 0 : most / d->along_x.stride + 1;
  if (points >= d->x.out) return d->x.out;
  return points < (int64_t)CONV_PIECE_TILES * g->rows[0] ? 0 : points;
}

static bool is_empty(const conv_state *s) {
  for (int32_t d = 0; d < s->rank; d++)
    if (s->dims[d].n <= 0 || s->dims[d].out <= 0 || s->dims[d].kernel <= 0) return true;
  return s->batch <= 0 || s->channels <= 0;
}

static bool is_point(const conv_dim *d) {
  return d->kernel == 1 && d->stride == 1 && d->low == 0 && d->high == 0 && d->input_dilation == 1;
}

/* Without taps beside the point itself, lines and elements of the batch are one behind the other. */
static void join_points(conv_state *s) {
  conv_direct *d = &s->direct;
  if (!is_point(&d->x) || !is_point(&d->y)) return;
  d->x.n = d->x.out = s->batch * d->y.n * d->x.n;
  d->y.n = d->y.out = d->batch = 1;
  d->along_x = d->along_y = (conv_phases){.count = 1, .stride = 1, .span = 1};
}

/* Tiles read rhs unpacked from L2. */
static bool is_small(const conv_state *s, int64_t taps, int64_t features) {
  double share = taps > 1 ? 2 : SINGLE_TAP_SHARE, phases = (double)conv_count_phases(&s->direct);
  return (double)(taps * s->channels * features * s->size) / phases <= (double)ts_target_host()->l2_bytes / share;
}

/* The height of the first tiles for rows of lhs at this distance: a line of each row stays in L1 for some steps of k.
 */
static int pick_tallest(const ts_gemm_geometry *g, int64_t bytes) {
  int height = 0;
  while (height < TS_GEMM_HEIGHTS - 1 && g->rows[height] > conv_rows_in_l1(bytes)) height++;
  return height;
}

/* Fewer accumulators wait for each other. */
#define LEAST_SUMS 8

/* The heights of the tiles that compute some points in the least time: one that extends past them computes some points
 * before them again. */
static void plan_heights(conv_direct *d, const ts_gemm_geometry *g) {
  for (int left = 1; left < 2 * g->rows[0]; left++) {
    d->tiles[left].cost = INT16_MAX;
    for (int h = d->tallest; h < TS_GEMM_HEIGHTS; h++) {
      const int rest = left > g->rows[h] ? d->tiles[left - g->rows[h]].cost : 0;
      const int cost = rest + (int)conv_max(g->rows[h], LEAST_SUMS / g->vectors);
      if (cost < d->tiles[left].cost) d->tiles[left] = (conv_tiles){(int16_t)h, (int16_t)cost};
    }
  }
}

/* The height of the next tile of `left` points of a strip of `out`, and how many points before it begins. A strip has
 * at least as many points as the lowest tile. */
static int pick_tile(const conv_direct *d, const ts_gemm_geometry *g, int64_t left, int64_t out, int64_t *back) {
  int height = left < 2 * g->rows[0] ? d->tiles[left].height : d->tallest;
  while (g->rows[height] > out) height++;
  *back = conv_max(0, g->rows[height] - left);
  return height;
}

/* Packing rows costs less than tiles that compute many points twice, and than lower tiles. Rows whose taps are left out
 * are mended as a whole. */
static bool suits_panels(const conv_state *s, const ts_gemm_geometry *g, int64_t taps, int64_t features) {
  const conv_direct *d = &s->direct;
  const int64_t points = d->x.out / d->along_x.count, again = conv_count_computed(d, g, points) - points;
  const bool packs_less = (double)again * (double)features > PACK_FEATURES * (double)points;
  return d->tallest == 0 && !packs_less && !conv_leaves_taps(d) && ts_conv_panels_fit(s, g, taps);
}

static bool fits(conv_state *s, const ts_gemm_geometry *g, int64_t features) {
  conv_direct *d = &s->direct;
  if (features <= 0 || (!g->masked && features % g->lanes != 0)) return false;
  if (d->x.out / d->along_x.count < g->rows[TS_GEMM_HEIGHTS - 1]) return false;
  /* blocks are added in pairs, not in order */
  if ((double)d->x.kernel * (double)d->y.kernel * (double)s->channels > TS_CONTRACT_BLOCK) return false;
  const int64_t taps = d->x.kernel * d->y.kernel;
  const bool small = is_small(s, taps, features);
  d->tallest = pick_tallest(g, d->along_x.stride * s->channels * s->size);
  plan_heights(d, g);
  d->panels = !small || (!conv_leaves_taps(d) && ts_conv_panels_gain(s, g, taps, features));
  return small || suits_panels(s, g, taps, features);
}

/* The most rows and points of a task: the operand's lines are copied, or read for each group of panels. */
static void limit_tasks(conv_state *s, const ts_gemm_geometry *g, int64_t features) {
  conv_direct *d = &s->direct;
  d->rows = d->y.out;
  d->points = d->x.out;
  d->line_bytes = d->copies ? conv_count_wide(&d->along_x, d->x.out) * s->channels * s->size : d->y.step;
  if (!d->copies && is_small(s, d->x.kernel * d->y.kernel, features)) return;
  if (!conv_is_cut(d)) {
    d->rows = plan_rows(d);
    return;
  }
  d->points = plan_points(s, g);
  if (d->copies) d->line_bytes = conv_count_wide(&d->along_x, d->points) * s->channels * s->size;
}

bool ts_conv_plan_direct(conv_state *s, int64_t features) {
  conv_direct *d = &s->direct;
  ts_gemm_compute compute;
  ts_gemm_geometry g;
  if (s->rank < 1 || s->rank > 2 || s->groups != 1 || is_empty(s) || !ts_gemm_is_native(s->type, &compute))
    return false;
  ts_gemm_get_geometry(compute, ts_target_host(), &g);
  d->batch = s->batch;
  d->x = s->dims[s->rank - 1];
  d->y = s->rank == 2 ? s->dims[0] : (conv_dim){1, 1, 1, 0, 0, 1, 1, 1, d->x.n * d->x.step};
  if (!ts_conv_find_phases(&d->y, &d->along_y) || !ts_conv_find_phases(&d->x, &d->along_x)) return false;
  if (ts_conv_plan_few(s, &g, features)) return d->used = true;
  join_points(s);
  if (!fits(s, &g, features)) return false;
  d->copies = !is_inside(&d->x, &d->along_x) || !is_inside(&d->y, &d->along_y);
  limit_tasks(s, &g, features);
  d->used = d->rows > 0 && d->points > 0;
  return d->used;
}

/* The last columns of rhs, when they are no whole vectors, are packed. */
static int64_t packed_columns(const conv_state *s, const ts_gemm_geometry *g) {
  int64_t rest = s->shape.n % ((int64_t)g->vectors * g->lanes);
  return rest % g->lanes && !s->direct.panels ? rest : 0;
}

static int64_t copy_bytes(const conv_direct *d) {
  return d->copies ? (conv_count_lines(d, d->rows) * d->line_bytes + 63) / 64 * 64 : 0;
}

int64_t ts_conv_direct_bytes(const conv_state *s) {
  const ts_gemm_geometry *g = &s->gemm->geometry;
  int64_t packed = packed_columns(s, g) ? s->shape.k * g->vectors * g->lanes * s->size : 0;
  return copy_bytes(&s->direct) + (packed + 63) / 64 * 64;
}

/* ---- a task: some features of some rows of outputs of one element of the batch, or of some points of a single row */

typedef struct direct_task {
  const conv_run *run;
  const conv_state *s;
  const ts_gemm_geometry *g;
  int64_t batch, first, end; /* rows */
  int64_t point, point_end;  /* of each row */
  int64_t col, col_end;      /* the group of features that is computed */
  int64_t shown;             /* the first row whose epilogue did not run */
  const char *lines;         /* the first element for the first tap of the first row's first point */
  char *packed;
  int worker;
} direct_task;

/* The first line of the operand that taps read for a row of outputs. */
static int64_t first_line(const conv_direct *d, int64_t row) {
  return row / d->along_y.count * d->along_y.stride + d->along_y.first;
}

/* The first element of a line that taps read for the task's first point. Pieces of a row are of one phase. */
static int64_t first_element(const direct_task *t) {
  const conv_phases *p = &t->s->direct.along_x;
  return t->point / p->count * p->stride + p->first;
}

static void copy_lines(const direct_task *t, char *to) {
  const conv_direct *d = &t->s->direct;
  const int64_t element = first_element(t), skipped = conv_min(conv_max(element, 0), d->x.n);
  const int64_t wide = conv_count_wide(&d->along_x, t->point_end - t->point), bytes = t->s->channels * t->s->size;
  const conv_dim line = {.n = d->x.n - skipped, .low = skipped - element, .input_dilation = 1};
  const char *source = t->run->source + t->batch * t->s->batch_bytes + skipped * bytes;
  const int64_t first = first_line(d, t->first), end = first_line(d, t->end - 1) + d->along_y.span;
  for (int64_t at = first; at < end; at++, to += d->line_bytes) {
    if (at >= 0 && at < d->y.n)
      ts_conv_copy_line(&line, wide, bytes, source + at * d->y.step, to);
    else
      memset(to, 0, (size_t)(wide * bytes));
  }
}

static void place_lines(direct_task *t, char *space) {
  const conv_state *s = t->s;
  const conv_direct *d = &s->direct;
  t->packed = space + copy_bytes(d);
  t->lines = space;
  if (d->copies)
    copy_lines(t, space);
  else
    t->lines = t->run->source + t->batch * s->batch_bytes + first_line(d, t->first) * d->y.step +
               first_element(t) * s->channels * s->size;
}

static void pack_columns(const direct_task *t) {
  const conv_state *s = t->s;
  const int cols = t->g->vectors * t->g->lanes;
  const gemm_pack pack = {s->type, t->g->compute, 1, s->shape.n, cols, cols, GEMM_REAL, NULL, 0, TS_DTYPE_NONE};
  int64_t rest = packed_columns(s, t->g);
  if (rest) ts_gemm_pack(&pack, t->run->kernel + (s->shape.n - rest) * s->size, rest, s->shape.k, t->packed, 0);
}

/* ---- tiles */

/* Points [first, end) of a phase. */
static void run_columns(const direct_task *t, const char *lhs, char *out, int64_t *args, int64_t first, int64_t end) {
  ts_kernel_fn kernel = ts_kernel_entry(t->s->gemm->kernels[TS_GEMM_STRIDED]);
  const int narrow = args[TS_GEMM_COLS] <= t->g->lanes;
  /* A line may be all of the work. */
  for (int64_t point = first, back; point < end && !ts_cancelled(t->run->cancel);) {
    const int height = pick_tile(&t->s->direct, t->g, end - point, end - first, &back);
    const int variant = height * TS_GEMM_WIDTHS + narrow;
    args[TS_GEMM_LHS] = (int64_t)(intptr_t)(lhs + (point - back) * args[TS_GEMM_LHS_STRIDE]);
    args[TS_GEMM_OUT] = (int64_t)(intptr_t)(out + (point - back) * args[TS_GEMM_OUT_STRIDE]);
    kernel(args, variant, variant + 1, NULL);
    point += t->g->rows[height] - back;
  }
}

/* Where the columns of rhs from `col` on begin; also the bytes from a step of k to the next one. */
static const char *find_columns(const direct_task *t, int64_t col, int64_t cols, int64_t *out_stride) {
  const conv_state *s = t->s;
  const int64_t full = (int64_t)t->g->vectors * t->g->lanes;
  const bool packed = cols % t->g->lanes != 0;
  *out_stride = t->run->panels || packed ? full * s->size : s->shape.n * s->size;
  if (t->run->panels) return t->run->panels + col * s->shape.k * s->size;
  return packed ? t->packed : t->run->kernel + col * s->size;
}

/* The group's features of points [first, end) of a phase. */
static void run_strip(const direct_task *t, const char *lhs, char *out, int64_t *args, int64_t first, int64_t end) {
  const int64_t full = (int64_t)t->g->vectors * t->g->lanes;
  for (int64_t col = t->col; col < t->col_end; col += full) {
    const int64_t cols = conv_min(full, t->col_end - col);
    args[TS_GEMM_COLS] = cols;
    args[TS_GEMM_RHS] = (int64_t)(intptr_t)find_columns(t, col, cols, &args[TS_GEMM_RHS_STRIDE]);
    run_columns(t, lhs, out + col * t->s->size, args, first, end);
  }
}

/* ---- epilogues */

/* Runs the epilogue on `rows` rows of the result, which are points, from a point of a row of outputs on. */
static void show(const direct_task *t, int64_t row, int64_t point, int64_t rows) {
  const conv_direct *d = &t->s->direct;
  const ts_epilogue *epilogue = t->run->epilogue;
  const ts_epilogue_part part = {0, (t->batch * d->y.out + row) * d->x.out + point, rows, t->col, t->col_end - t->col};
  if (epilogue && rows > 0) epilogue->run(epilogue->context, &part, t->worker);
}

/* True where all features are needed, and the task computes them in several groups. */
static bool shows_later(const direct_task *t) {
  return t->run->epilogue && t->run->epilogue->whole_rows && t->col_end - t->col < t->s->shape.n;
}

/* The points whose results are finished together. Of few terms, a tile takes hardly longer than its call: then strips
 * have several tiles. */
static int64_t count_shown(const direct_task *t) {
  const int64_t bytes = (t->col_end - t->col) * t->s->size;
  const int64_t least = conv_min(STRIP_TERMS / t->s->shape.k, ts_target_host()->l2_bytes / 4 / bytes);
  return conv_max(1, conv_max(least, FINISH_BYTES / bytes));
}

/* ---- rows */

/* No tap reads an element. */
static void clear_phase(const direct_task *t, char *out, int64_t points) {
  const int64_t bytes = t->s->shape.n * t->s->size;
  for (int64_t p = 0; p < points; p++)
    memset(out + p * t->s->direct.along_x.count * bytes + t->col * t->s->size, 0,
           (size_t)((t->col_end - t->col) * t->s->size));
}

/* The points of a row that is not mended, by strips whose results stay in L1 until the epilogue has run. */
static void run_points(const direct_task *t, int64_t row, const char *lhs, char *out, int64_t *args) {
  const int64_t shown = count_shown(t), unit = t->g->rows[0], step = conv_max(1, shown / unit) * unit;
  const bool whole = shown >= t->point_end - t->point || shows_later(t);
  int64_t first = 0, end = t->point_end - t->point;
  for (; first < end && !whole; first += step) {
    if (end - first < step + unit) break;
    run_strip(t, lhs, out, args, first, first + step);
    show(t, row, t->point + first, step);
  }
  run_strip(t, lhs, out, args, first, end);
  if (!whole) show(t, row, t->point + first, end - first);
}

static void run_phase(const direct_task *t, int64_t row, int64_t x) {
  const conv_state *s = t->s;
  const conv_direct *d = &s->direct;
  const int64_t point_bytes = s->shape.n * s->size, step = d->along_x.count;
  const conv_phase *phase = &d->phases[row % d->along_y.count * step + x];
  const char *lhs = t->lines + (first_line(d, row) - first_line(d, t->first)) * d->line_bytes;
  char *out = t->run->out + ((t->batch * d->y.out + row) * d->x.out + t->point + x) * point_bytes;
  const int64_t end = conv_ceil_div(t->point_end - t->point - x, step);
  int64_t args[TS_GEMM_ARGS] = {[TS_GEMM_PIECES] = (int64_t)(intptr_t)phase->pieces,
                                [TS_GEMM_PIECE_COUNT] = phase->count,
                                [TS_GEMM_LHS_STRIDE] = d->along_x.stride * s->channels * s->size,
                                [TS_GEMM_OUT_STRIDE] = step * point_bytes};
  if (phase->count == 0)
    clear_phase(t, out, end);
  else if (!conv_leaves_taps(d))
    run_points(t, row, lhs, out, args);
  else
    run_strip(t, lhs, out, args, 0, end);
}

/* Rows of few results are finished together. */
static void finish_row(direct_task *t, int64_t row) {
  const conv_direct *d = &t->s->direct;
  const int64_t points = t->point_end - t->point, rows = row + 1 - t->shown;
  if (shows_later(t)) return;
  if (!conv_leaves_taps(d) && count_shown(t) < points) {
    t->shown = row + 1; /* by strips */
  } else if (rows * points >= count_shown(t) || row + 1 == t->end) {
    show(t, t->shown, t->point, (rows - 1) * d->x.out + points);
    t->shown = row + 1;
  }
}

static void run_rows(direct_task *t) {
  const conv_direct *d = &t->s->direct;
  t->shown = t->first;
  for (int64_t row = t->first; row < t->end && !ts_cancelled(t->run->cancel); row++) {
    for (int64_t x = 0; x < d->along_x.count; x++) run_phase(t, row, x);
    if (conv_leaves_taps(d)) ts_conv_mend_row(t->run, t->batch, row);
    finish_row(t, row);
  }
}

/* ---- tasks */

/* Computes features [first, end) of the task, group by group. */
static void run_groups(direct_task *t, int64_t first, int64_t end) {
  const conv_direct *d = &t->s->direct;
  const int64_t group = ts_conv_group_panels(t->s) * t->g->vectors * t->g->lanes;
  bool later = false;
  for (t->col = first; t->col < end; t->col = t->col_end) {
    t->col_end = conv_min(t->col + group, end);
    later = shows_later(t);
    run_rows(t);
  }
  t->col = first;
  if (later && !ts_cancelled(t->run->cancel))
    show(t, t->first, t->point, (t->end - 1 - t->first) * d->x.out + t->point_end - t->point);
}

static void direct_task_run(void *arg, int64_t index, int worker) {
  const conv_run *run = arg;
  const conv_state *s = run->s;
  const conv_direct *d = &s->direct;
  const int64_t piece = index % run->points, part = index / run->points % run->parts;
  const int64_t rest = index / run->points / run->parts, row = rest % run->pieces * run->step;
  const int64_t panels = ts_conv_count_panels(s), width = (int64_t)s->gemm->geometry.vectors * s->gemm->geometry.lanes;
  direct_task t = {.run = run,
                   .s = s,
                   .g = &s->gemm->geometry,
                   .batch = rest / run->pieces,
                   .first = row,
                   .end = conv_min(row + run->step, d->y.out),
                   .point = piece * d->x.out / run->points,
                   .point_end = (piece + 1) * d->x.out / run->points,
                   .worker = worker};
  if (ts_cancelled(run->cancel)) return;
  if (conv_leaves_taps(d)) feclearexcept(FE_UNDERFLOW);
  place_lines(&t, run->workers + worker * run->worker_bytes);
  pack_columns(&t);
  run_groups(&t, part * panels / run->parts * width, conv_min((part + 1) * panels / run->parts * width, s->shape.n));
}

void ts_conv_run_direct(conv_run *run, const ts_parallel *parallel) {
  const conv_state *s = run->s;
  const conv_direct *d = &s->direct;
  run->has_special = ts_conv_has_special(run);
  if (s->shape.m * s->shape.n / conv_count_phases(d) < PARALLEL_MIN / s->shape.k) parallel = &ts_parallel_serial;
  if (d->panels && !run->panels) {
    ts_conv_pack_panels(run, parallel, run->copy);
    run->panels = run->copy;
  }
  ts_conv_cut(run, parallel->width);
  ts_parallel_run(parallel, d->batch * run->pieces * run->points * run->parts, direct_task_run, run);
}
