/* Convolutions whose taps are read from the operand, without packed rows. Neighbouring points of a row of outputs are
 * at equal distances in the operand, and the taps of one line are contiguous. So a tile of a product reads its rows
 * from the lines themselves. With padding, a task first copies its lines and adds the padding; that moves each element
 * once, while packing moves it once for each tap. */
#include "kernel/conv/conv_internal.h"
#include "kernel/gemm/gemm_internal.h"

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

static int64_t count_lines(const conv_direct *d, int64_t rows) {
  return (rows - 1) * d->y.stride + (d->y.kernel - 1) * d->y.kernel_dilation + 1;
}

static bool has_padding(const conv_dim *d) { return d->low > 0 || d->high > 0 || d->input_dilation > 1; }

/* The most rows whose lines with padding are a quarter of L2; 0 when one row's are more. */
static int64_t plan_rows(const conv_direct *d) {
  double most = (double)ts_target_host()->l2_bytes / 4 / (double)d->line_bytes;
  double one = (double)(d->y.kernel - 1) * (double)d->y.kernel_dilation + 1;
  if (one > most) return 0;
  return conv_min(d->y.out, 1 + (int64_t)((most - one) / (double)d->y.stride));
}

static bool is_empty(const conv_state *s) {
  for (int32_t d = 0; d < s->rank; d++)
    if (s->dims[d].n <= 0 || s->dims[d].out <= 0 || s->dims[d].kernel <= 0) return true;
  return s->batch <= 0 || s->channels <= 0;
}

/* Tiles read rhs unpacked from L2. */
static bool fits(const conv_state *s, const ts_gemm_geometry *g, int64_t features) {
  const conv_dim *x = &s->dims[s->rank - 1], *y = &s->dims[0];
  double taps = (double)x->kernel * (s->rank == 2 ? (double)y->kernel : 1);
  if (x->kernel > 1 && x->kernel_dilation != 1) return false;
  if (features <= 0 || (!g->masked && features % g->lanes != 0) || x->out < g->rows[TS_GEMM_HEIGHTS - 1]) return false;
  if (taps * (double)s->channels > TS_CONTRACT_BLOCK) return false; /* blocks are added in pairs, not in order */
  double share = taps > 1 ? 2 : SINGLE_TAP_SHARE;
  return taps * (double)(s->channels * features * s->size) <= (double)ts_target_host()->l2_bytes / share;
}

bool ts_conv_plan_direct(conv_state *s, int64_t features) {
  conv_direct *d = &s->direct;
  ts_gemm_compute compute;
  ts_gemm_geometry g;
  if (s->rank < 1 || s->rank > 2 || s->groups != 1 || is_empty(s) || !ts_gemm_is_native(s->type, &compute))
    return false;
  ts_gemm_get_geometry(compute, ts_target_host(), &g);
  if (!fits(s, &g, features)) return false;
  d->x = s->dims[s->rank - 1];
  d->y = s->rank == 2 ? s->dims[0] : (conv_dim){1, 1, 1, 0, 0, 1, 1, 1, 0};
  d->copies = has_padding(&d->x) || has_padding(&d->y);
  d->wide = (d->x.out - 1) * d->x.stride + d->x.kernel;
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

/* The operand's line of index `at` with padding; NULL for padding. */
static const char *find_line(const direct_task *t, int64_t at) {
  const conv_dim *y = &t->s->direct.y;
  at -= y->low;
  if (at < 0 || at % y->input_dilation != 0 || at / y->input_dilation >= y->n) return NULL;
  return t->run->source + t->batch * t->s->batch_bytes + at / y->input_dilation * y->step;
}

static void copy_lines(const direct_task *t, char *to) {
  const conv_direct *d = &t->s->direct;
  int64_t lines = count_lines(d, t->end - t->first);
  for (int64_t i = 0; i < lines; i++, to += d->line_bytes) {
    const char *from = find_line(t, t->first * d->y.stride + i);
    if (from)
      ts_conv_copy_line(&d->x, d->wide, t->s->channels * t->s->size, from, to);
    else
      memset(to, 0, (size_t)d->line_bytes);
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
    t->lines = t->run->source + t->batch * s->batch_bytes + (t->first * d->y.stride - d->y.low) * d->y.step -
               d->x.low * s->channels * s->size;
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

static void run_columns(const direct_task *t, const char *lhs, char *out, int64_t *args, int narrow) {
  const int64_t points = t->point_end - t->point;
  ts_kernel_fn kernel = ts_kernel_entry(t->s->gemm->kernels[TS_GEMM_STRIDED]);
  /* A line may be all of the work. */
  for (int64_t point = t->point, back; point < t->point_end && !ts_cancelled(t->run->cancel);) {
    int height = pick_tile(t->g, t->point_end - point, points, &back), variant = height * TS_GEMM_WIDTHS + narrow;
    args[TS_GEMM_LHS] = (int64_t)(intptr_t)(lhs + (point - back) * args[TS_GEMM_LHS_STRIDE]);
    args[TS_GEMM_OUT] = (int64_t)(intptr_t)(out + (point - back) * args[TS_GEMM_OUT_STRIDE]);
    kernel(args, variant, variant + 1, NULL);
    point += t->g->rows[height] - back;
  }
}

static void run_row(const direct_task *t, int64_t row) {
  const conv_state *s = t->s;
  const conv_direct *d = &s->direct;
  const int64_t full = (int64_t)t->g->vectors * t->g->lanes, point_bytes = s->shape.n * s->size;
  const char *lhs = t->lines + (row - t->first) * d->y.stride * d->line_bytes;
  char *out = t->run->out + (t->batch * d->y.out + row) * d->x.out * point_bytes;
  int64_t args[TS_GEMM_ARGS] = {[TS_GEMM_K] = d->x.kernel * s->channels,
                                [TS_GEMM_RUNS] = d->y.kernel,
                                [TS_GEMM_RUN_STRIDE] = d->y.kernel_dilation * d->line_bytes,
                                [TS_GEMM_LHS_STRIDE] = d->x.stride * s->channels * s->size,
                                [TS_GEMM_OUT_STRIDE] = point_bytes,
                                [TS_GEMM_CHAIN] = TS_CONTRACT_CHAIN};
  for (int64_t col = 0; col < s->shape.n; col += full) {
    int64_t cols = conv_min(full, s->shape.n - col);
    bool packed = cols % t->g->lanes != 0;
    args[TS_GEMM_COLS] = cols;
    args[TS_GEMM_RHS] = (int64_t)(intptr_t)(packed ? t->packed : t->run->kernel + col * s->size);
    args[TS_GEMM_RHS_STRIDE] = packed ? full * s->size : point_bytes;
    run_columns(t, lhs, out + col * s->size, args, cols <= t->g->lanes);
  }
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
 * for each. */
static int64_t count_pieces(const conv_state *s, int64_t width) {
  const conv_direct *d = &s->direct;
  if (width == 1 || d->copies || d->y.out > 1) return 1;
  int64_t most = d->x.out / (PIECE_TILES * s->gemm->geometry.rows[0]);
  return conv_max(1, conv_min(conv_ceil_div(width * TASKS_PER_WORKER, s->batch), most));
}

void ts_conv_run_direct(conv_run *run, const ts_parallel *parallel) {
  const conv_state *s = run->s;
  const conv_direct *d = &s->direct;
  if (s->shape.m * s->shape.n < PARALLEL_MIN / s->shape.k) parallel = &ts_parallel_serial;
  int64_t wanted = conv_ceil_div(s->batch * d->y.out, (int64_t)parallel->width * TASKS_PER_WORKER);
  run->pieces = conv_ceil_div(d->y.out, conv_min(d->rows, wanted));
  run->step = conv_ceil_div(d->y.out, run->pieces);
  run->points = count_pieces(s, parallel->width);
  ts_parallel_run(parallel, s->batch * run->pieces * run->points, direct_task_run, run);
}
