/* Small and thin products: tiles read the operands where they lie, since packing would cost as much as the product.
 * Only columns that are not neighbours, or of complex numbers, are packed. Narrower elements are widened first, of lhs
 * for some rows at a time, and the results of these rows are narrowed. Complex numbers of lhs that are no neighbours
 * are copied in the same way.
 *
 * Tiles of other heights are other code, whose NaNs may have other signs. So the rows of a tile depend on the product's
 * rows alone, not on tasks or epilogues. */
#include "kernel/every_second.h"
#include "kernel/gemm/gemm_internal.h"
#include "kernel/gemm/gemm_widen.h"

/* Multiplications of a task: enough to amortize its start. */
#define TASK_PRODUCTS (64 << 10)
#define PART_TILES 4        /* tiles in a part, at least */
#define COLUMN_TASK_TILES 4 /* of the columns of a task, at least */
#define TALL_TILE 12
/* Up to this k what takes time is to write the results: in their order and few rows at once, where rows have enough
 * tiles. */
#define LINE_STEPS 8
#define LINE_ROWS 4
#define LINE_TILES 8
/* Bytes of a widened rhs, and of the widened rows of a part: they stay in L1. */
#define WIDENED_RHS (32 << 10)
#define WIDENED_ROWS (16 << 10)

typedef struct small_plan {
  const gemm_run *run;
  const ts_gemm_geometry *g;
  const ts_parallel *parallel; /* serial for small products */
  int64_t tile_cols;
  int64_t steps;        /* of k in one call of the kernel: this much of a tile's rhs stays in L1 */
  int64_t tiles;        /* of the rows of a batch */
  int64_t height;       /* of a tile */
  int64_t taller;       /* the first tiles, which have a row more */
  int64_t part;         /* tiles that are done together */
  bool packs;           /* rhs is packed by each task */
  bool by_lines;        /* a tile's columns are computed one after the other, before the next tile's */
  bool by_batches;      /* a call of the kernel computes several batches */
  int64_t task_batches; /* in one task */
  int64_t row_tasks;    /* of a batch but the last ones */
  gemm_cut last;        /* the tiles of these */
  int64_t col_tasks;    /* of the rows of a task, where there are few of them */
  int64_t tasks;
  int64_t first_col; /* of the task */
  bool widens;       /* lhs is narrower than what is computed, or its numbers are apart */
  int64_t rhs_bytes; /* of a packed rhs */
  int64_t lhs_bytes; /* of the widened rows of a part */
  int64_t worker_bytes;
  char *workers; /* of each worker: a packed rhs, widened rows, results that are not narrowed yet */
} small_plan;

/* ---- one task ---- */

/* The rhs of a batch: columns that are neighbours, and bytes from k to k + 1 and from a tile's columns to the next's.
 */
typedef struct columns {
  const char *at;
  int64_t step, tile;
} columns;

/* The columns of a packed panel: of a single one no more than there are, in pieces of 16 bytes. Never 0, also where rhs
 * has no column. */
static int64_t packed_width(const ts_gemm_geometry *g, int64_t n) {
  return gemm_min((int64_t)g->vectors * g->lanes, gemm_round_up(gemm_max(n, 1), 16 / g->element_size));
}

static columns packed_columns(const ts_gemm_geometry *g, const ts_gemm_shape *s, const char *panels) {
  const int64_t step = packed_width(g, s->n) * g->element_size;
  return (columns){panels, step, s->k * step};
}

void ts_gemm_pack_columns(const ts_gemm *gemm, const ts_gemm_shape *s, const void *rhs, void *out) {
  const ts_gemm_geometry *g = &gemm->geometry;
  const int cols = (int)packed_width(g, s->n);
  const gemm_pack pack = {.dtype = gemm->types.rhs,
                          .compute = g->compute,
                          .unit_stride = s->rhs_col,
                          .k_stride = s->rhs_row,
                          .step = cols,
                          .width = cols,
                          .numbers = gemm->complex ? GEMM_RIGHT : GEMM_REAL,
                          .scale_type = TS_DTYPE_NONE};
  ts_gemm_pack(&pack, rhs, s->n, s->k, out, packed_columns(g, s, out).tile);
}

static columns find_columns(const small_plan *p, int64_t batch, int worker) {
  const gemm_run *run = p->run;
  const ts_gemm_shape *s = &run->shape;
  const int size = run->gemm->rhs_size;
  const char *from = run->rhs + batch * s->rhs_batch * size;
  if (run->columns) return packed_columns(p->g, s, run->columns);
  if (!p->packs) return (columns){from, s->rhs_row * size, p->tile_cols * size};
  char *panels = p->workers + worker * p->worker_bytes;
  ts_gemm_pack_columns(run->gemm, s, from, panels);
  return packed_columns(p->g, s, panels);
}

static int64_t first_row(const small_plan *p, int64_t tile) { return tile * p->height + gemm_min(tile, p->taller); }

/* `count` tiles of a height, at the distances that the arguments name. */
static void run_kernel(const small_plan *p, int64_t *args, int64_t height, int64_t count) {
  const int width = ts_gemm_small_width(p->g, args[TS_GEMM_COLS]);
  const int64_t variant = (height - 1) * ts_gemm_small_widths(p->g) + width;
  args[TS_GEMM_TILES] = count;
  ts_kernel_entry(p->run->gemm->kernels[TS_GEMM_SMALL])(args, variant, variant + 1, NULL);
}

/* Some rows of lhs and of the results, of the type that is computed. Strides are in elements. */
typedef struct some_rows {
  const char *lhs;
  int64_t lhs_row, lhs_col;
  char *out;
  int64_t out_row;
} some_rows;

typedef void (*height_fn)(const small_plan *p, int64_t *args, int64_t height, int64_t count, const columns *rhs);

/* Tiles [tile, end) of a batch, from the arguments' lhs and out on: those with a row more, then the others. */
static void run_heights(const small_plan *p, int64_t *args, int64_t tile, int64_t end, height_fn run,
                        const columns *rhs) {
  const int64_t taller = gemm_max(0, gemm_min(p->taller, end) - tile), counts[] = {end - tile - taller, taller};
  const int64_t lhs = args[TS_GEMM_LHS], out = args[TS_GEMM_OUT], rows = taller * (p->height + 1);
  if (counts[1] > 0) run(p, args, p->height + 1, counts[1], rhs);
  args[TS_GEMM_LHS] = lhs + rows * args[TS_GEMM_LHS_STRIDE];
  args[TS_GEMM_OUT] = out + rows * args[TS_GEMM_OUT_STRIDE];
  if (counts[0] > 0) run(p, args, p->height, counts[0], rhs);
}

/* Tiles in the same columns and steps of k. */
static void run_column(const small_plan *p, int64_t *args, int64_t height, int64_t count, const columns *rhs) {
  (void)rhs;
  args[TS_GEMM_NEXT_LHS] = height * args[TS_GEMM_LHS_STRIDE];
  args[TS_GEMM_NEXT_RHS] = 0;
  args[TS_GEMM_NEXT_OUT] = height * args[TS_GEMM_OUT_STRIDE];
  run_kernel(p, args, height, count);
}

/* All columns of one tile after the other. */
static void run_lines(const small_plan *p, int64_t *args, int64_t height, int64_t count, const columns *rhs) {
  const int64_t n = p->run->shape.n, whole = n / p->tile_cols, rest = n % p->tile_cols;
  const int64_t out = args[TS_GEMM_OUT];
  args[TS_GEMM_NEXT_LHS] = 0;
  args[TS_GEMM_NEXT_RHS] = rhs->tile;
  args[TS_GEMM_NEXT_OUT] = p->tile_cols * p->g->element_size;
  for (int64_t i = 0; i < count; i++) {
    args[TS_GEMM_RHS] = (int64_t)(intptr_t)rhs->at;
    args[TS_GEMM_OUT] = out + i * height * args[TS_GEMM_OUT_STRIDE];
    args[TS_GEMM_COLS] = p->tile_cols;
    if (whole > 0) run_kernel(p, args, height, whole);
    args[TS_GEMM_RHS] += whole * args[TS_GEMM_NEXT_RHS];
    args[TS_GEMM_OUT] += whole * args[TS_GEMM_NEXT_OUT];
    args[TS_GEMM_COLS] = rest;
    if (rest > 0) run_kernel(p, args, height, 1);
    args[TS_GEMM_LHS] += height * args[TS_GEMM_LHS_STRIDE];
  }
}

static void set_args(const small_plan *p, const some_rows *rows, const columns *rhs, int64_t *args) {
  const int size = p->g->element_size;
  args[TS_GEMM_K] = p->run->shape.k;
  args[TS_GEMM_LHS] = (int64_t)(intptr_t)rows->lhs;
  args[TS_GEMM_RHS] = (int64_t)(intptr_t)rhs->at;
  args[TS_GEMM_OUT] = (int64_t)(intptr_t)rows->out;
  args[TS_GEMM_RHS_STRIDE] = rhs->step;
  args[TS_GEMM_OUT_STRIDE] = rows->out_row * size;
  args[TS_GEMM_CHAIN] = p->run->chain;
  args[TS_GEMM_LHS_STRIDE] = rows->lhs_row * size;
  args[TS_GEMM_LHS_STEP] = rows->lhs_col * size;
}

/* Tiles [tile, end) of a batch. */
static void run_tiles(const small_plan *p, const some_rows *rows, const columns *rhs, int64_t tile, int64_t end) {
  const ts_gemm_shape *s = &p->run->shape;
  const int size = p->g->element_size;
  const int64_t steps = end - tile > 1 ? p->steps : s->k;
  int64_t args[TS_GEMM_ARGS] = {0};
  set_args(p, rows, rhs, args);
  if (p->by_lines) {
    run_heights(p, args, tile, end, run_lines, rhs);
    return;
  }
  for (int64_t col = 0; col < s->n; col += p->tile_cols) {
    const char *right = rhs->at + col / p->tile_cols * rhs->tile;
    args[TS_GEMM_COLS] = gemm_min(p->tile_cols, s->n - col);
    for (int64_t k = 0; k < s->k; k += steps) {
      args[TS_GEMM_K] = gemm_min(steps, s->k - k);
      args[TS_GEMM_ADDS] = k > 0;
      args[TS_GEMM_LHS] = (int64_t)(intptr_t)(rows->lhs + k * args[TS_GEMM_LHS_STEP]);
      args[TS_GEMM_RHS] = (int64_t)(intptr_t)(right + k * rhs->step);
      args[TS_GEMM_OUT] = (int64_t)(intptr_t)(rows->out + col * size);
      run_heights(p, args, tile, end, run_column, rhs);
    }
  }
}

/* Batches of one tile each. */
static void run_batches(const small_plan *p, int64_t batch, int64_t count) {
  const gemm_run *run = p->run;
  const ts_gemm_shape *s = &run->shape;
  const int size = p->g->element_size;
  const some_rows rows = {run->lhs + batch * s->lhs_batch * size, s->lhs_row, s->lhs_col,
                          run->out + batch * s->out_batch * size, s->out_row};
  const columns rhs = {run->rhs + batch * s->rhs_batch * size, s->rhs_row * size, 0};
  int64_t args[TS_GEMM_ARGS] = {[TS_GEMM_COLS] = s->n,
                                [TS_GEMM_NEXT_LHS] = s->lhs_batch * size,
                                [TS_GEMM_NEXT_RHS] = s->rhs_batch * size,
                                [TS_GEMM_NEXT_OUT] = s->out_batch * size};
  set_args(p, &rows, &rhs, args);
  run_kernel(p, args, s->m, count);
}

/* ---- narrow elements ---- */

static const float ones[] = {1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1};
enum { ONES = sizeof ones / sizeof *ones };

/* Widens `lines` lines of `count` neighbours each, to lines one behind the other. */
static void widen_lines(const small_plan *p, const char *from, int64_t pitch, int64_t lines, int64_t count, char *out) {
  const gemm_widen *with = ts_gemm_widen_host();
  const int64_t size = p->run->gemm->lhs_size, row = count * p->g->element_size;
  for (int64_t i = 0; i < lines; i += ONES, from += ONES * pitch * size, out += ONES * row) {
    const gemm_widen_rows some = {.type = p->run->gemm->types.lhs,
                                  .from = from,
                                  .from_row = pitch * size,
                                  .rows = gemm_min(ONES, lines - i),
                                  .count = count,
                                  .out = out,
                                  .out_row = row,
                                  .scales = ones};
    (p->g->compute == TS_GEMM_F64 ? with->to_f64 : with->to_f32)(&some);
  }
}

/* Of elements that have no neighbours: they become neighbours, at most APART of some rows at a time. */
static void widen_apart(const small_plan *p, const char *from, int64_t count, char *out) {
  enum { APART = 1024 };
  const ts_gemm_shape *s = &p->run->shape;
  const int64_t size = p->run->gemm->lhs_size, most = gemm_min(APART, s->k), rows = APART / most;
  char lines[APART * 4];
  for (int64_t i = 0; i < count; i += rows)
    for (int64_t k = 0; k < s->k; k += most) {
      const int64_t steps = gemm_min(most, s->k - k), here = gemm_min(rows, count - i);
      for (int64_t r = 0; r < here; r++) {
        const char *at = from + ((i + r) * s->lhs_row + k * s->lhs_col) * size;
        if (size == 2)
          copy_apart(at, s->lhs_col, steps, 2, lines + r * steps * 2);
        else
          copy_apart(at, s->lhs_col, steps, 4, lines + r * steps * 4);
      }
      widen_lines(p, lines, 0, 1, here * steps, out + (i * s->k + k) * p->g->element_size);
    }
}

/* Complex numbers at any distances; s->lhs_col is of numbers. */
static void copy_numbers(const small_plan *p, const char *from, int64_t count, char *to) {
  const ts_gemm_shape *s = &p->run->shape;
  const int64_t size = p->g->element_size;
  for (int64_t k = 0; k < s->k; k += 2, from += 2 * s->lhs_col * size, to += 2 * size)
    for (int64_t i = 0; i < count; i++) {
      const char *at = from + i * s->lhs_row * size;
      char *number = to + i * s->k * size;
      if (size == 4)
        memcpy(number, at, 8);
      else
        memcpy(number, at, 16);
    }
}

/* Widens `count` rows of lhs into `to`, along k or along rows. */
static void widen_rows(const small_plan *p, const char *from, int64_t count, char *to, some_rows *out) {
  const ts_gemm_shape *s = &p->run->shape;
  out->lhs = to;
  out->lhs_row = s->k, out->lhs_col = 1;
  if (p->run->gemm->complex) {
    copy_numbers(p, from, count, to);
  } else if (s->lhs_col == 1 || s->k == 1) {
    const bool is_dense = s->lhs_row == s->k;
    widen_lines(p, from, s->lhs_row, is_dense ? 1 : count, is_dense ? count * s->k : s->k, to);
  } else if (s->lhs_row == 1) {
    out->lhs_row = 1, out->lhs_col = count;
    widen_lines(p, from, s->lhs_col, s->k, count, to);
  } else {
    widen_apart(p, from, count, to);
  }
}

static void narrow_rows(const small_plan *p, const some_rows *rows, int64_t count, char *out) {
  const gemm_run *run = p->run;
  const int64_t n = run->shape.n, pitch = run->shape.out_row;
  if (pitch == n)
    ts_gemm_narrow(run->gemm->types.out, rows->out, count * n, out);
  else
    for (int64_t i = 0; i < count; i++)
      ts_gemm_narrow(run->gemm->types.out, rows->out + i * n * p->g->element_size, n, out + i * pitch * run->size);
}

/* ---- parts ---- */

static void run_part(const small_plan *p, const columns *rhs, int64_t batch, int64_t tile, int64_t end, int worker) {
  const gemm_run *run = p->run;
  const ts_gemm_shape *s = &run->shape;
  const int64_t row = first_row(p, tile), count = first_row(p, end) - row;
  const char *lhs = run->lhs + (batch * s->lhs_batch + row * s->lhs_row) * run->gemm->lhs_size;
  char *const out = run->out + (batch * s->out_batch + row * s->out_row) * run->size;
  char *const own = p->workers + worker * p->worker_bytes + p->rhs_bytes;
  some_rows rows = {lhs, s->lhs_row, s->lhs_col, out, s->out_row};
  if (p->widens) widen_rows(p, lhs, count, own, &rows);
  if (!run->native) {
    rows.out = own + p->lhs_bytes;
    rows.out_row = s->n;
  }
  run_tiles(p, &rows, rhs, tile, end);
  if (!run->native) narrow_rows(p, &rows, count, out);
  if (run->epilogue) gemm_show(run, (ts_epilogue_part){batch, row, count, p->first_col, s->n}, worker);
}

/* Tiles [tile, end) of a batch, part by part: the results of a part are finished while they are in L1. */
static void run_batch(const small_plan *p, int64_t batch, int64_t tile, int64_t end, int worker) {
  const columns rhs = find_columns(p, batch, worker);
  for (int64_t next; tile < end && !gemm_cancelled(p->run); tile = next) {
    next = gemm_min(tile + p->part, end);
    run_part(p, &rhs, batch, tile, next, worker);
  }
}

static void run_task(const small_plan *p, int64_t task, int worker) {
  const ts_gemm_shape *s = &p->run->shape;
  const int64_t groups = gemm_ceil_div(s->batch, p->task_batches), group = gemm_min(task / p->row_tasks, groups - 1);
  const int64_t part = task - group * p->row_tasks, first = group * p->task_batches;
  const int64_t last = gemm_min(first + p->task_batches, s->batch);
  int64_t tile = p->tiles * part / p->row_tasks, end = p->tiles * (part + 1) / p->row_tasks;
  if (group == groups - 1) {
    tile = gemm_cut_first(&p->last, part);
    end = gemm_cut_next(&p->last, tile);
  }
  if (p->by_batches) {
    run_batches(p, first, last - first);
    return;
  }
  for (int64_t b = first; b < last && !gemm_cancelled(p->run); b++) run_batch(p, b, tile, end, worker);
}

/* Some of the columns are a product of their own. */
static void columns_task(const small_plan *p, int64_t task, int worker) {
  const ts_gemm_shape *s = &p->run->shape;
  const int64_t part = task % p->col_tasks, panels = gemm_ceil_div(s->n, p->tile_cols);
  const int64_t first = panels * part / p->col_tasks * p->tile_cols;
  const int64_t end = gemm_min(panels * (part + 1) / p->col_tasks * p->tile_cols, s->n);
  gemm_run run = *p->run;
  small_plan own = *p;
  own.run = &run;
  own.first_col = first;
  run.rhs += first * s->rhs_col * run.gemm->rhs_size;
  run.out += first * run.size;
  run.shape.n = end - first;
  run_task(&own, task / p->col_tasks, worker);
}

static void small_task(void *arg, int64_t task, int worker) {
  const small_plan *p = arg;
  (p->col_tasks > 1 ? columns_task : run_task)(p, task, worker);
}

/* ---- runs ---- */

static bool packs_columns(const ts_gemm_shape *s) { return s->rhs_col != 1 && s->n > 1; }

static bool is_narrow(const ts_gemm *gemm, ts_dtype type) {
  return gemm->compute < TS_GEMM_I32 && (int)ts_dtype_size(type) < gemm->geometry.element_size;
}

bool ts_gemm_some_packs(const ts_gemm *gemm, const ts_gemm_shape *s) {
  return gemm->complex || packs_columns(s) || is_narrow(gemm, gemm->types.rhs);
}

int ts_gemm_some_rows(const ts_gemm *gemm) { return gemm->geometry.small; }

static int64_t packed_bytes(const ts_gemm_geometry *g, const ts_gemm_shape *s) {
  return gemm_round_up(s->n, packed_width(g, s->n)) * g->element_size * s->k;
}

int64_t ts_gemm_columns_bytes(const ts_gemm *gemm, const ts_gemm_shape *s) {
  return ts_pool_padded(packed_bytes(&gemm->geometry, s));
}

static void plan_parts(small_plan *p) {
  const ts_gemm_shape *s = &p->run->shape;
  const int64_t most = ts_target_host()->l1_bytes * 2 / 3 / (p->tile_cols * p->g->element_size);
  p->steps = gemm_max(1, most / TS_CONTRACT_CHAIN) * TS_CONTRACT_CHAIN;
  /* Blocks of k are added to one another, and integers may be; one chain of floats may not be cut. */
  if (ts_gemm_goes_on(p->run) && p->run->gemm->compute < TS_GEMM_I32) p->steps = s->k;
  p->by_lines = s->k <= LINE_STEPS && s->n >= LINE_TILES * p->tile_cols;
  p->tiles = gemm_ceil_div(s->m, p->by_lines ? LINE_ROWS : p->g->small);
  p->height = s->m / p->tiles;
  p->taller = s->m % p->tiles;
  p->part = gemm_max(TS_GEMM_FINISH_BYTES / (s->n * p->run->size * p->g->small), PART_TILES);
  if (p->run->columns) p->part = p->tiles; /* the caller has chosen the rows */
}

static void plan_widened(small_plan *p) {
  const ts_gemm_shape *s = &p->run->shape;
  const int64_t size = p->g->element_size, most = p->g->small;
  p->widens = is_narrow(p->run->gemm, p->run->gemm->types.lhs) || (p->run->gemm->complex && s->lhs_col != 1);
  if (p->widens) p->part = gemm_max(1, gemm_min(p->part, WIDENED_ROWS / (s->k * size * most)));
  const int64_t rows = gemm_min(p->part * most, s->m);
  p->lhs_bytes = p->widens ? ts_pool_padded(rows * s->k * size) : 0;
  p->worker_bytes = p->rhs_bytes + p->lhs_bytes;
  if (!p->run->native) p->worker_bytes += ts_pool_padded(rows * s->n * size);
}

static void choose_tasks(small_plan *p) {
  const ts_gemm_shape *s = &p->run->shape;
  const int64_t products = s->m * s->n * s->k, most = p->g->small;
  p->parallel = ts_gemm_tiles_are_large(p->run->gemm, s) ? p->run->parallel : &ts_parallel_serial;
  p->task_batches = gemm_min(s->batch, gemm_max(1, TASK_PRODUCTS / products));
  p->row_tasks = p->col_tasks = 1;
  if (p->parallel->width == 1) return;
  const int64_t wanted = gemm_ceil_div((int64_t)p->parallel->width * TS_GEMM_TILE_TASKS, s->batch);
  p->row_tasks = gemm_min(wanted, gemm_max(1, s->m / (2 * most)));
  const bool whole_rows = p->run->epilogue && p->run->epilogue->whole_rows;
  if (p->row_tasks * s->batch >= p->parallel->width || whole_rows || p->run->columns) return;
  p->col_tasks = gemm_max(1, gemm_min(wanted / p->row_tasks, s->n / (COLUMN_TASK_TILES * p->tile_cols)));
}

static void plan_tasks(small_plan *p) {
  choose_tasks(p);
  const int64_t most = gemm_ceil_div(p->tiles, p->row_tasks),
                groups = gemm_ceil_div(p->run->shape.batch, p->task_batches);
  p->last = (gemm_cut){p->tiles, most, p->row_tasks == 1 ? most : 1, p->parallel->width};
  p->tasks = ((groups - 1) * p->row_tasks + gemm_cut_tasks(&p->last)) * p->col_tasks;
}

ts_status ts_gemm_run_small(const gemm_run *run) {
  const ts_gemm_shape *s = &run->shape;
  small_plan p = {.run = run, .g = &run->gemm->geometry};
  void *memory = NULL;
  p.tile_cols = (int64_t)p.g->vectors * p.g->lanes;
  plan_parts(&p);
  plan_tasks(&p);
  p.packs = !run->columns && ts_gemm_some_packs(run->gemm, s);
  p.rhs_bytes = p.packs ? ts_pool_padded(packed_bytes(p.g, s)) : 0;
  plan_widened(&p);
  p.by_batches = p.tiles == 1 && s->n <= p.tile_cols && !p.packs && !p.widens && run->native && !run->epilogue;
  const int64_t bytes = p.worker_bytes * p.parallel->width;
  if (bytes > 0) TS_TRY(ts_pool_alloc(run->pool, bytes, &memory));
  p.workers = memory;
  ts_parallel_run(p.parallel, p.tasks, small_task, &p);
  if (bytes > 0) ts_pool_free(run->pool, memory, bytes);
  return ts_check_cancelled(run->cancel, "a matrix product");
}

/* The largest rhs that pays. For low tiles lines of 64-bit elements whose k are apart are not fetched early enough.
 * Where one tile is all rows rhs is read once, as by packing, which does more, and by AXPY, which has too many vectors.
 */
static int64_t most_bytes(const ts_gemm_geometry *g, const ts_gemm_shape *s) {
  const int64_t l2 = ts_target_host()->l2_bytes;
  if (g->small < TALL_TILE && s->lhs_col != 1 && g->element_size == 8) return l2 / 16;
  if (s->m <= TS_GEMM_FEW_ITEMS || s->m > g->small) return l2 / 2;
  return s->m <= TS_GEMM_MAX_ITEMS ? 4 * l2 : l2;
}

/* Each task widens rhs again. */
static bool is_small_widened(const ts_gemm *gemm, const ts_gemm_shape *s) {
  const ts_gemm_types *t = &gemm->types;
  const bool floats = ts_dtype_is_float(t->lhs) && ts_dtype_is_float(t->rhs) && !ts_dtype_is_small(t->lhs);
  return floats && !ts_dtype_is_small(t->rhs) && gemm->compute < TS_GEMM_I32 &&
         packed_bytes(&gemm->geometry, s) <= WIDENED_RHS;
}

/* Complex products that are faster without packing (complex_vector.h): of few rows with terms enough, of few columns
 * with many. */
static bool is_complex_vector(const ts_gemm_shape *s) {
  enum { ROWS = 8, COLUMNS = 16, TERMS = 8, SUMS = 100, FEW_COLUMNS = 3, MANY_TERMS = 64 };
  const int64_t n = s->n / 2, k = s->k / 2;
  const bool rows = s->m <= ROWS && s->m < n && n >= COLUMNS && k >= TERMS && k * n >= SUMS * s->m;
  return rows || (n <= FEW_COLUMNS && n <= s->m && k >= MANY_TERMS);
}

/* Each task packs rhs, which has to pay for few rows, too. */
static bool is_small_complex(const ts_gemm *gemm, const ts_gemm_shape *s) {
  enum { ROWS = 4, COLUMNS = 4 }; /* parts of two numbers */
  if (is_complex_vector(s)) return false;
  return s->m >= ROWS && s->n >= COLUMNS && packed_bytes(&gemm->geometry, s) <= ts_target_host()->l2_bytes / 8;
}

bool ts_gemm_is_small(const ts_gemm *gemm, const ts_gemm_shape *s) {
  const ts_gemm_geometry *g = &gemm->geometry;
  const ts_gemm_types *t = &gemm->types;
  if (gemm->complex) return s->k <= TS_CONTRACT_BLOCK && is_small_complex(gemm, s);
  if (gemm->scaled || gemm->depth > 1 || s->k > TS_CONTRACT_BLOCK) return false;
  if (!gemm->native || t->lhs != t->out || t->rhs != t->out) return is_small_widened(gemm, s);
  /* tiles of packed operands have whole vectors */
  const bool has_few = s->n <= g->lanes / 2 && packed_bytes(g, s) <= ts_target_host()->l2_bytes / 8;
  if (packs_columns(s)) return has_few || s->m > TS_GEMM_SHARED_ROWS || s->n * s->k < TS_GEMM_WEIGHT_ELEMENTS;
  return !gemm_shares_lines(g, s) && packed_bytes(g, s) <= most_bytes(g, s);
}
