/* Convolutions whose taps are read from the operand, without packed rows. Neighbouring points of a row of outputs are
 * at equal distances in the operand, and the taps of one line are contiguous. So a tile of a product reads its rows
 * from the lines themselves. With padding, a task first copies its lines and adds the padding; that moves each element
 * once, while packing moves it once for each tap. An operand that is dilated has zeros between its elements: the points
 * of a phase share the taps that meet elements, and only these are computed (conv_phases.c). */
#include "kernel/conv/conv_internal.h"
#include "kernel/gemm/gemm_internal.h"

#include <fenv.h>
#include <string.h>

/* Fewer multiplications stay on one thread. */
#define PARALLEL_MIN (768 << 10)
#define TASKS_PER_WORKER 4
/* Tiles of points in a piece of a row. */
#define PIECE_TILES 4
/* Bytes of results to finish together: enough to amortize the calls, few enough for L1. */
#define FINISH_BYTES (24 << 10)

/* With a single tap, a packed row of lhs has no element twice: packing costs little where there are many features. */
#define SINGLE_TAP_SHARE 4

/* ---- the plan */

/* The most lines that some neighbouring rows of outputs read. */
static int64_t count_lines(const conv_direct *d, int64_t rows) {
  return conv_ceil_div(rows - 1, d->along_y.count) * d->along_y.stride + d->along_y.span;
}

/* Elements from the first one that a tap reads to the last one. */
static int64_t count_wide(const conv_dim *d, const conv_phases *p) {
  return (conv_ceil_div(d->out, p->count) - 1) * p->stride + p->span;
}

static bool is_inside(const conv_dim *d, const conv_phases *p) {
  return p->first >= 0 && p->first + count_wide(d, p) <= d->n;
}

/* The most rows whose lines with padding are a quarter of L2; 0 when one row's are more. */
static int64_t plan_rows(const conv_direct *d) {
  double most = (double)ts_target_host()->l2_bytes / 4 / (double)d->line_bytes, one = (double)d->along_y.span;
  if (one > most) return 0;
  double rows = 1 + (most - one) / (double)d->along_y.stride * (double)d->along_y.count;
  while (rows > 1 && (double)count_lines(d, (int64_t)rows) > most) rows--;
  return conv_min(d->y.out, (int64_t)rows);
}

static bool is_empty(const conv_state *s) {
  for (int32_t d = 0; d < s->rank; d++)
    if (s->dims[d].n <= 0 || s->dims[d].out <= 0 || s->dims[d].kernel <= 0) return true;
  return s->batch <= 0 || s->channels <= 0;
}

/* Tiles read rhs unpacked from L2. */
static bool fits(const conv_state *s, const ts_gemm_geometry *g, int64_t features) {
  const conv_direct *d = &s->direct;
  double taps = (double)d->x.kernel * (double)d->y.kernel;
  if (features <= 0 || (!g->masked && features % g->lanes != 0)) return false;
  if (d->x.out / d->along_x.count < g->rows[TS_GEMM_HEIGHTS - 1]) return false;
  if (taps * (double)s->channels > TS_CONTRACT_BLOCK) return false; /* blocks are added in pairs, not in order */
  double share = taps > 1 ? 2 : SINGLE_TAP_SHARE, phases = (double)conv_count_phases(d);
  return taps * (double)(s->channels * features * s->size) / phases <= (double)ts_target_host()->l2_bytes / share;
}

bool ts_conv_plan_direct(conv_state *s, int64_t features) {
  conv_direct *d = &s->direct;
  ts_gemm_compute compute;
  ts_gemm_geometry g;
  if (s->rank < 1 || s->rank > 2 || s->groups != 1 || is_empty(s) || !ts_gemm_is_native(s->type, &compute))
    return false;
  ts_gemm_get_geometry(compute, ts_target_host(), &g);
  d->x = s->dims[s->rank - 1];
  d->y = s->rank == 2 ? s->dims[0] : (conv_dim){1, 1, 1, 0, 0, 1, 1, 1, 0};
  if (!ts_conv_find_phases(&d->y, &d->along_y) || !ts_conv_find_phases(&d->x, &d->along_x)) return false;
  if (ts_conv_plan_few(s, &g, features)) return d->used = true;
  if (!fits(s, &g, features)) return false;
  d->copies = !is_inside(&d->x, &d->along_x) || !is_inside(&d->y, &d->along_y);
  d->wide = count_wide(&d->x, &d->along_x);
  d->line_bytes = d->copies ? d->wide * s->channels * s->size : d->y.step;
  d->rows = d->copies ? plan_rows(d) : d->y.out;
  d->used = d->rows > 0;
  return d->used;
}

/* The last columns of rhs, when they are no whole vectors, are packed. */
static int64_t packed_columns(const conv_state *s, const ts_gemm_geometry *g) {
  int64_t rest = s->shape.n % ((int64_t)g->vectors * g->lanes);
  return rest % g->lanes ? rest : 0;
}

static int64_t copy_bytes(const conv_direct *d) {
  return d->copies ? (count_lines(d, d->rows) * d->line_bytes + 63) / 64 * 64 : 0;
}

int64_t ts_conv_direct_bytes(const conv_state *s) {
  const ts_gemm_geometry *g = &s->gemm->geometry;
  int64_t packed = packed_columns(s, g) ? s->shape.k * g->vectors * g->lanes * s->size : 0;
  return copy_bytes(&s->direct) + (packed + 63) / 64 * 64;
}

/* ---- a task: some rows of outputs of one element of the batch, or some points of a single row */

typedef struct direct_task {
  const conv_run *run;
  const conv_state *s;
  const ts_gemm_geometry *g;
  int64_t batch, first, end; /* rows */
  int64_t point, point_end;  /* of each row */
  const char *lines;         /* the first element for the first tap of the first row's first point */
  char *packed;
  int worker;
} direct_task;

/* The first line of the operand that taps read for a row of outputs. */
static int64_t first_line(const conv_direct *d, int64_t row) {
  return row / d->along_y.count * d->along_y.stride + d->along_y.first;
}

static void copy_lines(const direct_task *t, char *to) {
  const conv_direct *d = &t->s->direct;
  const conv_dim line = {.n = d->x.n, .low = -d->along_x.first, .input_dilation = 1};
  const char *source = t->run->source + t->batch * t->s->batch_bytes;
  const int64_t first = first_line(d, t->first), end = first_line(d, t->end - 1) + d->along_y.span;
  for (int64_t at = first; at < end; at++, to += d->line_bytes) {
    if (at >= 0 && at < d->y.n)
      ts_conv_copy_line(&line, d->wide, t->s->channels * t->s->size, source + at * d->y.step, to);
    else
      memset(to, 0, (size_t)d->line_bytes);
  }
}

static void place_lines(direct_task *t, char *space) {
  const conv_state *s = t->s;
  const conv_direct *d = &s->direct;
  const int64_t first = first_line(d, t->first);
  t->packed = space + copy_bytes(d);
  t->lines = space;
  if (d->copies)
    copy_lines(t, space);
  else
    t->lines =
        t->run->source + t->batch * s->batch_bytes + first * d->y.step + d->along_x.first * s->channels * s->size;
}

static void pack_columns(const direct_task *t) {
  const conv_state *s = t->s;
  const int cols = t->g->vectors * t->g->lanes;
  const gemm_pack pack = {s->type, t->g->compute, 1, s->shape.n, cols, cols, GEMM_REAL, NULL, 0, TS_DTYPE_NONE};
  int64_t rest = packed_columns(s, t->g);
  if (rest) ts_gemm_pack(&pack, t->run->kernel + (s->shape.n - rest) * s->size, rest, s->shape.k, t->packed, 0);
}

/* ---- tiles */

/* The height of the tile at the first of `left` points of a row of `out`, and how many points before it begins: then it
 * computes these again. A row has at least as many points as the lowest tile. */
static int pick_tile(const ts_gemm_geometry *g, int64_t left, int64_t out, int64_t *back) {
  int height = TS_GEMM_HEIGHTS - 1;
  while (height > 0 && g->rows[height] < left) height--;
  int64_t over = g->rows[height] - left;
  if (over > g->rows[TS_GEMM_HEIGHTS - 1] - 1 || g->rows[height] > out) over = g->rows[++height] - left;
  *back = over > 0 ? over : 0;
  return height;
}

/* Points [first, end) of a phase. */
static void run_columns(const direct_task *t, const char *lhs, char *out, int64_t *args, int64_t first, int64_t end) {
  ts_kernel_fn kernel = ts_kernel_entry(t->s->gemm->kernels[TS_GEMM_STRIDED]);
  const int narrow = args[TS_GEMM_COLS] <= t->g->lanes;
  /* A line may be all of the work. */
  for (int64_t point = first, back; point < end && !ts_cancelled(t->run->cancel);) {
    int height = pick_tile(t->g, end - point, end - first, &back), variant = height * TS_GEMM_WIDTHS + narrow;
    args[TS_GEMM_LHS] = (int64_t)(intptr_t)(lhs + (point - back) * args[TS_GEMM_LHS_STRIDE]);
    args[TS_GEMM_OUT] = (int64_t)(intptr_t)(out + (point - back) * args[TS_GEMM_OUT_STRIDE]);
    kernel(args, variant, variant + 1, NULL);
    point += t->g->rows[height] - back;
  }
}

/* No tap reads an element. */
static void clear_phase(const direct_task *t, char *out, int64_t points) {
  const int64_t bytes = t->s->shape.n * t->s->size;
  for (int64_t p = 0; p < points; p++) memset(out + p * t->s->direct.along_x.count * bytes, 0, (size_t)bytes);
}

static void run_phase(const direct_task *t, int64_t row, int64_t x) {
  const conv_state *s = t->s;
  const conv_direct *d = &s->direct;
  const int64_t full = (int64_t)t->g->vectors * t->g->lanes, point_bytes = s->shape.n * s->size;
  const int64_t step = d->along_x.count;
  const int64_t first = step == 1 ? t->point : 0, end = conv_ceil_div(t->point_end - x, step);
  const conv_phase *phase = &d->phases[row % d->along_y.count * step + x];
  const char *lhs = t->lines + (first_line(d, row) - first_line(d, t->first)) * d->line_bytes;
  char *out = t->run->out + ((t->batch * d->y.out + row) * d->x.out + x) * point_bytes;
  int64_t args[TS_GEMM_ARGS] = {[TS_GEMM_PIECES] = (int64_t)(intptr_t)phase->pieces,
                                [TS_GEMM_PIECE_COUNT] = phase->count,
                                [TS_GEMM_LHS_STRIDE] = d->along_x.stride * s->channels * s->size,
                                [TS_GEMM_OUT_STRIDE] = step * point_bytes};
  if (phase->count == 0) {
    clear_phase(t, out, end);
    return;
  }
  for (int64_t col = 0; col < s->shape.n; col += full) {
    int64_t cols = conv_min(full, s->shape.n - col);
    bool packed = cols % t->g->lanes != 0;
    args[TS_GEMM_COLS] = cols;
    args[TS_GEMM_RHS] = (int64_t)(intptr_t)(packed ? t->packed : t->run->kernel + col * s->size);
    args[TS_GEMM_RHS_STRIDE] = packed ? full * s->size : point_bytes;
    run_columns(t, lhs, out + col * s->size, args, first, end);
  }
}

static void run_row(const direct_task *t, int64_t row) {
  const conv_direct *d = &t->s->direct;
  for (int64_t x = 0; x < d->along_x.count; x++) run_phase(t, row, x);
  if (conv_leaves_taps(d)) ts_conv_mend_row(t->run, t->batch, row);
}

/* Runs the epilogue on rows of outputs. */
static void show(const direct_task *t, int64_t first, int64_t end) {
  const conv_direct *d = &t->s->direct;
  const ts_epilogue *epilogue = t->run->epilogue;
  if (!epilogue || first == end) return;
  const ts_epilogue_part part = {0, (t->batch * d->y.out + first) * d->x.out + t->point,
                                 (end - 1 - first) * d->x.out + t->point_end - t->point, 0, t->s->shape.n};
  epilogue->run(epilogue->context, &part, t->worker);
}

static void direct_task_run(void *arg, int64_t index, int worker) {
  const conv_run *run = arg;
  const conv_state *s = run->s;
  const conv_direct *d = &s->direct;
  int64_t piece = index % run->points, rest = index / run->points;
  int64_t row = rest % run->pieces * run->step, shown = row, bytes = d->x.out * s->shape.n * s->size;
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
  for (; row < t.end && !ts_cancelled(run->cancel); row++) {
    run_row(&t, row);
    if ((row + 1 - shown) * bytes < FINISH_BYTES) continue;
    show(&t, shown, row + 1);
    shown = row + 1;
  }
  show(&t, shown, row);
}

/* Into how many pieces a single row is cut: each has several of the highest tiles. Of a copy, all lines would be copied
 * for each, and whole rows are mended. */
static int64_t count_pieces(const conv_state *s, int64_t width) {
  const conv_direct *d = &s->direct;
  if (width == 1 || d->copies || d->y.out > 1 || conv_leaves_taps(d)) return 1;
  int64_t most = d->x.out / (PIECE_TILES * s->gemm->geometry.rows[0]);
  return conv_max(1, conv_min(conv_ceil_div(width * TASKS_PER_WORKER, s->batch), most));
}

void ts_conv_run_direct(conv_run *run, const ts_parallel *parallel) {
  const conv_state *s = run->s;
  const conv_direct *d = &s->direct;
  run->has_special = ts_conv_has_special(run);
  if (s->shape.m * s->shape.n / conv_count_phases(d) < PARALLEL_MIN / s->shape.k) parallel = &ts_parallel_serial;
  int64_t wanted = conv_ceil_div(s->batch * d->y.out, (int64_t)parallel->width * TASKS_PER_WORKER);
  run->pieces = conv_ceil_div(d->y.out, conv_min(d->rows, wanted));
  run->step = conv_ceil_div(d->y.out, run->pieces);
  run->points = count_pieces(s, parallel->width);
  ts_parallel_run(parallel, s->batch * run->pieces * run->points, direct_task_run, run);
}
