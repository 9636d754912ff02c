/* Convolutions with few features, such as the last one of a network that makes images. Features in the lanes of vectors
 * would leave most lanes empty, so here points of the output are in the lanes: a row of the product is a feature, and a
 * column a point. A task transposes the lines that it reads, with their padding, so that neighbouring points of a
 * channel are neighbours in memory. With strides, the lines and the elements of each residue are neighbours. Rows of
 * outputs are one behind the other there; the columns between them, where taps reach past the end of a row, are
 * computed and not used. Each sum has its terms in the same order as otherwise. */
#include "kernel/conv/conv_internal.h"
#include "kernel/gemm/gemm_internal.h"

#include <string.h>

/* Fewer multiplications stay on one thread. */
#define PARALLEL_MIN (768 << 10)
#define TASKS_PER_WORKER 4
/* Shorter pieces of k cost more than the columns save. */
#define FEWEST_CHANNELS 8
#define BLOCK 16 /* points that are transposed together */

/* ---- the plan */

static int64_t tile_width(const ts_gemm_geometry *g) { return (int64_t)g->vectors * g->lanes; }

/* The columns of some rows of outputs. */
static int64_t count_columns(const conv_direct *d, int64_t rows) { return (rows - 1) * d->few.wide + d->x.out; }

static int64_t residue_size(const conv_direct *d, int64_t rows) { return (rows + d->few.high) * d->few.wide; }

/* Elements of a channel. The last tile reads past the last column, and the last block is written whole. An odd number
 * of cache lines, so that channels do not compete for a set. */
static int64_t plane_size(const conv_direct *d, const ts_gemm_geometry *g, int64_t rows) {
  const int64_t all = d->y.stride * d->x.stride * residue_size(d, rows) + conv_max(tile_width(g), BLOCK);
  return (conv_ceil_div(all, BLOCK) | 1) * BLOCK;
}

static int pick_height(const ts_gemm_geometry *g, int64_t features) {
  int height = TS_GEMM_HEIGHTS - 1;
  while (height > 0 && g->rows[height] < features) height--;
  return height;
}

/* The most rows of a task whose transposed lines are half of L2. */
static int64_t plan_rows(const conv_state *s, const ts_gemm_geometry *g) {
  const conv_direct *d = &s->direct;
  int64_t rows = d->y.out;
  while (rows > 1 && plane_size(d, g, rows) * s->channels * s->size > ts_target_host()->l2_bytes / 2)
    rows = conv_ceil_div(rows, 2);
  return plane_size(d, g, rows) * s->channels * s->size <= ts_target_host()->l2_bytes / 2 ? rows : 0;
}

/* To transpose a vector takes as long as so many multiplications of vectors. */
#define MOVE_COST 16

/* Compares the vectors that are multiplied, and those that are transposed, of one element of the batch. */
static bool gains(const conv_state *s, const ts_gemm_geometry *g) {
  const conv_direct *d = &s->direct;
  const double taps = (double)d->y.kernel * (double)d->x.kernel;
  const int64_t tiles = conv_ceil_div(count_columns(d, d->rows), tile_width(g)) * conv_ceil_div(d->y.out, d->rows);
  const double vectors = (double)(tiles * g->vectors * g->rows[d->few.height]);
  const double moved = MOVE_COST * (double)residue_size(d, d->y.out) / g->lanes * (double)(d->y.stride * d->x.stride);
  return taps * vectors + moved < 0.7 * taps * (double)(d->y.out * d->x.out);
}

bool ts_conv_plan_few(conv_state *s, const ts_gemm_geometry *g, int64_t features) {
  conv_direct *d = &s->direct;
  conv_few *few = &d->few;
  if (features < 1 || 2 * features > g->lanes || s->channels < FEWEST_CHANNELS) return false;
  if (d->x.input_dilation > 1 || d->y.input_dilation > 1) return false;
  if (d->x.kernel * d->y.kernel * s->channels > TS_CONTRACT_BLOCK) return false;
  few->wide = d->x.out + (d->x.kernel - 1) * d->x.kernel_dilation / d->x.stride;
  few->high = (d->y.kernel - 1) * d->y.kernel_dilation / d->y.stride;
  few->height = pick_height(g, features);
  if ((double)(few->wide + d->y.out + few->high) * (double)(d->x.stride * d->y.stride) > 1 << 20) return false;
  d->rows = plan_rows(s, g);
  if (d->rows == 0 || !gains(s, g)) return false;
  few->plane = plane_size(d, g, d->rows);
  return few->used = true;
}

/* Where a tap reads, in elements of a channel, for the first point of a task of the most rows. */
static int64_t tap_place(const conv_direct *d, int64_t ty, int64_t tx) {
  const int64_t y = ty * d->y.kernel_dilation, x = tx * d->x.kernel_dilation;
  const int64_t residue = y % d->y.stride * d->x.stride + x % d->x.stride;
  return residue * residue_size(d, d->rows) + y / d->y.stride * d->few.wide + x / d->x.stride;
}

ts_status ts_conv_plan_few_pieces(conv_state *s, ts_arena *arena) {
  const conv_direct *d = &s->direct;
  const int64_t taps = d->y.kernel * d->x.kernel, end = taps * s->channels;
  ts_gemm_piece *pieces, *next;
  TS_TRY(TS_ARENA_ARRAY(arena, (size_t)(taps + end / TS_CONTRACT_CHAIN + 2), &pieces));
  next = pieces;
  for (int64_t k = 0; k < end;) {
    const int64_t tap = k / s->channels, channel = k % s->channels;
    const int64_t steps = conv_min(s->channels - channel, TS_CONTRACT_CHAIN - k % TS_CONTRACT_CHAIN);
    const int64_t place = tap_place(d, tap / d->x.kernel, tap % d->x.kernel);
    *next++ = (ts_gemm_piece){.lhs = k * s->size,
                              .rhs = channel,
                              .rhs_bytes = place * s->size,
                              .steps = steps,
                              .ends = (k + steps) % TS_CONTRACT_CHAIN == 0 || k + steps == end};
    k += steps;
  }
  s->direct.few.pieces = pieces;
  s->direct.few.count = next - pieces;
  return TS_SUCCESS;
}

static int64_t tile_rows(const conv_state *s) { return s->gemm->geometry.rows[s->direct.few.height]; }

/* The columns of a task of the most rows, up to whole tiles. */
static int64_t result_columns(const conv_state *s) {
  return gemm_round_up(count_columns(&s->direct, s->direct.rows), tile_width(&s->gemm->geometry));
}

int64_t ts_conv_few_shared_bytes(const conv_state *s) { return gemm_round_up(tile_rows(s) * s->shape.k * s->size, 64); }

static int64_t lines_bytes(const conv_state *s) {
  return gemm_round_up(s->direct.few.plane * s->channels * s->size, 64);
}

int64_t ts_conv_few_bytes(const conv_state *s) {
  return lines_bytes(s) + gemm_round_up(tile_rows(s) * result_columns(s) * s->size, 64);
}

/* ---- a task: some rows of outputs of one element of the batch */

typedef struct few_task {
  const conv_run *run;
  const conv_state *s;
  int64_t batch, first, end; /* rows */
  char *lines, *results;
} few_task;

static bool has_tap(const conv_dim *d, int64_t residue) {
  for (int64_t t = 0; t < d->kernel; t++)
    if (t * d->kernel_dilation % d->stride == residue) return true;
  return false;
}

/* The elements of one residue of y and of x, in the order of columns. */
typedef struct residue {
  int64_t line, place; /* of the next element */
  int64_t x;
  const char *from; /* the line's first element; NULL for padding */
} residue;

static const char *find_line(const few_task *t, int64_t y) {
  const conv_dim *d = &t->s->direct.y;
  return y < 0 || y >= d->n ? NULL : t->run->source + t->batch * t->s->batch_bytes + y * d->step;
}

/* The channels of the next element, or zeros. */
static const char *take_element(const few_task *t, residue *r) {
  const conv_direct *d = &t->s->direct;
  const int64_t x = r->place * d->x.stride + r->x - d->x.low;
  const char *found = r->from && x >= 0 && x < d->x.n ? r->from + x * d->x.step : t->s->zeros;
  if (++r->place == d->few.wide) {
    r->place = 0;
    r->line += d->y.stride;
    r->from = find_line(t, r->line);
  }
  return found;
}

/* Transposes the elements of one residue. The last block may reach into the next residue, which follows. */
static void move_residue(const few_task *t, int64_t y, int64_t x) {
  const conv_state *s = t->s;
  const conv_direct *d = &s->direct;
  const gemm_pack pack = {
      .dtype = s->type, .compute = s->gemm->geometry.compute, .step = BLOCK, .width = (int)d->few.plane};
  const int64_t all = residue_size(d, t->end - t->first), line = t->first * d->y.stride + y - d->y.low;
  char *to = t->lines + (y * d->x.stride + x) * residue_size(d, d->rows) * s->size;
  const char *elements[BLOCK + 3]; /* with the room that ts_gemm_pack_rows fills */
  residue r = {.line = line, .x = x, .from = find_line(t, line)};
  for (int64_t at = 0; at < all; at += BLOCK) {
    const int64_t count = conv_min(BLOCK, all - at);
    for (int64_t i = 0; i < count; i++) elements[i] = take_element(t, &r);
    ts_gemm_pack_rows(&pack, elements, count, s->channels, to + at * s->size);
  }
}

static void move_lines(const few_task *t) {
  const conv_direct *d = &t->s->direct;
  for (int64_t y = 0; y < d->y.stride; y++) {
    if (!has_tap(&d->y, y)) continue;
    for (int64_t x = 0; x < d->x.stride; x++)
      if (has_tap(&d->x, x)) move_residue(t, y, x);
  }
}

static void run_tiles(const few_task *t) {
  const conv_state *s = t->s;
  const conv_direct *d = &s->direct;
  const int64_t width = tile_width(&s->gemm->geometry), columns = count_columns(d, t->end - t->first);
  const int variant = d->few.height * TS_GEMM_WIDTHS;
  ts_kernel_fn kernel = ts_kernel_entry(s->gemm->kernels[TS_GEMM_STRIDED]);
  int64_t args[TS_GEMM_ARGS] = {[TS_GEMM_LHS] = (int64_t)(intptr_t)t->run->copy,
                                [TS_GEMM_LHS_STRIDE] = s->shape.k * s->size,
                                [TS_GEMM_PIECES] = (int64_t)(intptr_t)d->few.pieces,
                                [TS_GEMM_PIECE_COUNT] = d->few.count,
                                [TS_GEMM_RHS_STRIDE] = d->few.plane * s->size,
                                [TS_GEMM_OUT_STRIDE] = result_columns(s) * s->size,
                                [TS_GEMM_COLS] = width};
  for (int64_t column = 0; column < columns && !ts_cancelled(t->run->cancel); column += width) {
    args[TS_GEMM_RHS] = (int64_t)(intptr_t)(t->lines + column * s->size);
    args[TS_GEMM_OUT] = (int64_t)(intptr_t)(t->results + column * s->size);
    kernel(args, variant, variant + 1, NULL);
  }
}

#define DEFINE_STORE_ROWS(name, type)                                                                \
  static void store_rows_##name(const few_task *t, type *out) {                                      \
    const conv_direct *d = &t->s->direct;                                                            \
    const int64_t features = t->s->shape.n, columns = result_columns(t->s);                          \
    for (int64_t row = 0; row < t->end - t->first; row++)                                            \
      for (int64_t f = 0; f < features; f++) {                                                       \
        const type *from = (const type *)(const void *)t->results + f * columns + row * d->few.wide; \
        type *to = out + row * d->x.out * features + f;                                              \
        for (int64_t x = 0; x < d->x.out; x++) to[x * features] = from[x];                           \
      }                                                                                              \
  }

DEFINE_STORE_ROWS(4, uint32_t)
DEFINE_STORE_ROWS(8, uint64_t)

static void store_results(const few_task *t, int worker) {
  const conv_state *s = t->s;
  const conv_direct *d = &s->direct;
  const int64_t first = (t->batch * d->y.out + t->first) * d->x.out, points = (t->end - t->first) * d->x.out;
  char *out = t->run->out + first * s->shape.n * s->size;
  if (s->size == 4)
    store_rows_4(t, (uint32_t *)(void *)out);
  else
    store_rows_8(t, (uint64_t *)(void *)out);
  const ts_epilogue *epilogue = t->run->epilogue;
  const ts_epilogue_part part = {0, first, points, 0, s->shape.n};
  if (epilogue) epilogue->run(epilogue->context, &part, worker);
}

static void few_task_run(void *arg, int64_t index, int worker) {
  const conv_run *run = arg;
  const conv_state *s = run->s;
  const int64_t first = index % run->pieces * run->step;
  char *space = run->workers + worker * run->worker_bytes;
  const few_task t = {.run = run,
                      .s = s,
                      .batch = index / run->pieces,
                      .first = first,
                      .end = conv_min(first + run->step, s->direct.y.out),
                      .lines = space,
                      .results = space + lines_bytes(s)};
  if (ts_cancelled(run->cancel)) return;
  move_lines(&t);
  run_tiles(&t);
  if (!ts_cancelled(run->cancel)) store_results(&t, worker);
}

/* ---- a run */

/* A row of the weights of each feature, and rows of zeros up to the tile's height. */
static void turn_weights(const conv_run *run) {
  const conv_state *s = run->s;
  const int64_t features = s->shape.n, k = s->shape.k;
  memset(run->copy, 0, (size_t)(tile_rows(s) * k * s->size));
  for (int64_t i = 0; i < k; i++)
    for (int64_t f = 0; f < features; f++)
      memcpy(run->copy + (f * k + i) * s->size, run->kernel + (i * features + f) * s->size, (size_t)s->size);
}

void ts_conv_run_few(conv_run *run, const ts_parallel *parallel) {
  const conv_state *s = run->s;
  const conv_direct *d = &s->direct;
  if (s->shape.m * s->shape.n < PARALLEL_MIN / s->shape.k) parallel = &ts_parallel_serial;
  const int64_t tasks = parallel->width > 1 ? (int64_t)parallel->width * TASKS_PER_WORKER : 1;
  const int64_t wanted = conv_ceil_div(s->batch * d->y.out, tasks);
  run->pieces = conv_ceil_div(d->y.out, conv_min(d->rows, wanted));
  run->step = conv_ceil_div(d->y.out, run->pieces);
  turn_weights(run);
  ts_parallel_run(parallel, s->batch * run->pieces, few_task_run, run);
}
