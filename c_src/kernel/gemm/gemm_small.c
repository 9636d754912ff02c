/* Small and thin products: tiles read the operands where they lie, since packing would cost as much as the product.
 * Only columns that are not neighbours are packed.
 *
 * Tiles of other heights are other code, whose NaNs may have other signs. So the rows of a tile depend on the product's
 * rows alone, not on tasks or epilogues. */
#include "kernel/gemm/gemm_internal.h"

/* Multiplications of a task: enough to amortize its start. */
#define TASK_PRODUCTS (64 << 10)
#define PART_TILES 4 /* tiles in a part, at least */
#define TALL_TILE 12

typedef struct small_plan {
  const gemm_run *run;
  const ts_gemm_geometry *g;
  const ts_parallel *parallel; /* serial for small products */
  int64_t tile_cols;
  int64_t steps;        /* of k in one call of the kernel: this much of a tile's rhs stays in L1 */
  int64_t tiles;        /* of the rows of a batch, of nearly equal heights */
  int64_t part;         /* tiles that are done together */
  bool packs;           /* rhs is packed by each task */
  int64_t task_batches; /* in one task */
  int64_t row_tasks;    /* of a batch */
  int64_t rhs_bytes;    /* of a packed rhs */
  char *workers;        /* of each worker: a packed rhs */
} small_plan;

/* ---- one task ---- */

/* The rhs of a batch: columns that are neighbours, and bytes from k to k + 1 and from a tile's columns to the next's.
 */
typedef struct columns {
  const char *at;
  int64_t step, tile;
} columns;

static columns find_columns(const small_plan *p, int64_t batch, int worker) {
  const ts_gemm_shape *s = &p->run->shape;
  const int size = p->g->element_size, cols = (int)p->tile_cols;
  const char *from = p->run->rhs + batch * s->rhs_batch * size;
  if (!p->packs) return (columns){from, s->rhs_row * size, p->tile_cols * size};
  const gemm_pack pack = {.dtype = p->run->gemm->types.rhs,
                          .compute = p->g->compute,
                          .unit_stride = s->rhs_col,
                          .k_stride = s->rhs_row,
                          .step = cols,
                          .width = cols,
                          .scale_type = TS_DTYPE_NONE};
  char *panels = p->workers + worker * p->rhs_bytes;
  ts_gemm_pack(&pack, from, s->n, s->k, panels, s->k * p->tile_cols * size);
  return (columns){panels, p->tile_cols * size, s->k * p->tile_cols * size};
}

static int64_t first_row(const small_plan *p, int64_t tile) {
  const int64_t rows = p->run->shape.m;
  return tile * (rows / p->tiles) + gemm_min(tile, rows % p->tiles);
}

/* Tiles [tile, end) in the same columns and steps of k. */
static void run_column(const small_plan *p, int64_t *args, int64_t tile, int64_t end) {
  const ts_kernel_fn kernel = ts_kernel_entry(p->run->gemm->kernels[TS_GEMM_SMALL]);
  const bool narrow = args[TS_GEMM_COLS] <= p->g->lanes;
  for (; tile < end; tile++) {
    const int64_t height = first_row(p, tile + 1) - first_row(p, tile);
    const int64_t variant = (height - 1) * TS_GEMM_WIDTHS + narrow;
    kernel(args, variant, variant + 1, NULL);
    args[TS_GEMM_LHS] += height * args[TS_GEMM_LHS_STRIDE];
    args[TS_GEMM_OUT] += height * args[TS_GEMM_OUT_STRIDE];
  }
}

/* Tiles [tile, end) of a batch. */
static void run_tiles(const small_plan *p, const columns *rhs, int64_t batch, int64_t tile, int64_t end) {
  const gemm_run *run = p->run;
  const ts_gemm_shape *s = &run->shape;
  const int size = p->g->element_size;
  const int64_t row = first_row(p, tile), steps = end - tile > 1 ? p->steps : s->k;
  const char *lhs = run->lhs + (batch * s->lhs_batch + row * s->lhs_row) * size;
  char *out = run->out + (batch * s->out_batch + row * s->out_row) * size;
  int64_t args[TS_GEMM_ARGS] = {[TS_GEMM_RHS_STRIDE] = rhs->step,
                                [TS_GEMM_OUT_STRIDE] = s->out_row * size,
                                [TS_GEMM_CHAIN] = run->chain,
                                [TS_GEMM_LHS_STRIDE] = s->lhs_row * size,
                                [TS_GEMM_LHS_STEP] = s->lhs_col * size};
  for (int64_t col = 0; col < s->n; col += p->tile_cols) {
    const char *right = rhs->at + col / p->tile_cols * rhs->tile;
    args[TS_GEMM_COLS] = gemm_min(p->tile_cols, s->n - col);
    for (int64_t k = 0; k < s->k; k += steps) {
      args[TS_GEMM_K] = gemm_min(steps, s->k - k);
      args[TS_GEMM_ADDS] = k > 0;
      args[TS_GEMM_LHS] = (int64_t)(intptr_t)(lhs + k * args[TS_GEMM_LHS_STEP]);
      args[TS_GEMM_RHS] = (int64_t)(intptr_t)(right + k * rhs->step);
      args[TS_GEMM_OUT] = (int64_t)(intptr_t)(out + col * size);
      run_column(p, args, tile, end);
    }
  }
}

/* Tiles [tile, end) of a batch, part by part: the results of a part are finished while they are in L1. */
static void run_batch(const small_plan *p, int64_t batch, int64_t tile, int64_t end, int worker) {
  const gemm_run *run = p->run;
  const columns rhs = find_columns(p, batch, worker);
  for (int64_t next; tile < end && !gemm_cancelled(run); tile = next) {
    next = gemm_min(tile + p->part, end);
    run_tiles(p, &rhs, batch, tile, next);
    const int64_t row = first_row(p, tile), count = first_row(p, next) - row;
    if (run->epilogue) gemm_show(run, (ts_epilogue_part){batch, row, count, 0, run->shape.n}, worker);
  }
}

static void small_task(void *arg, int64_t task, int worker) {
  const small_plan *p = arg;
  const ts_gemm_shape *s = &p->run->shape;
  const int64_t part = task % p->row_tasks, first = task / p->row_tasks * p->task_batches;
  const int64_t tile = p->tiles * part / p->row_tasks, end = p->tiles * (part + 1) / p->row_tasks;
  for (int64_t b = first; b < gemm_min(first + p->task_batches, s->batch) && !gemm_cancelled(p->run); b++)
    run_batch(p, b, tile, end, worker);
}

/* ---- runs ---- */

static bool packs_columns(const ts_gemm_shape *s) { return s->rhs_col != 1 && s->n > 1; }

static int64_t packed_bytes(const ts_gemm_geometry *g, const ts_gemm_shape *s) {
  const int64_t cols = (int64_t)g->vectors * g->lanes;
  return gemm_round_up(s->n, cols) * g->element_size * s->k;
}

static void plan_parts(small_plan *p) {
  const ts_gemm_shape *s = &p->run->shape;
  const int64_t most = ts_target_host()->l1_bytes * 2 / 3 / (p->tile_cols * p->g->element_size);
  p->steps = gemm_max(1, most / TS_CONTRACT_CHAIN) * TS_CONTRACT_CHAIN;
  /* Blocks of k are added to one another, and integers may be; one chain of floats may not be cut. */
  if (ts_gemm_goes_on(p->run) && p->run->gemm->compute < TS_GEMM_I32) p->steps = s->k;
  p->tiles = gemm_ceil_div(s->m, p->g->small);
  p->part = gemm_max(TS_GEMM_FINISH_BYTES / (s->n * p->run->size * p->g->small), PART_TILES);
}

static void plan_tasks(small_plan *p) {
  const ts_gemm_shape *s = &p->run->shape;
  const int64_t products = s->m * s->n * s->k, most = p->g->small;
  p->parallel = ts_gemm_tiles_are_large(p->run->gemm, s) ? p->run->parallel : &ts_parallel_serial;
  p->task_batches = gemm_min(s->batch, gemm_max(1, TASK_PRODUCTS / products));
  p->row_tasks = 1;
  if (p->parallel->width == 1) return;
  const int64_t wanted = gemm_ceil_div((int64_t)p->parallel->width * TS_GEMM_TILE_TASKS, s->batch);
  p->row_tasks = gemm_min(wanted, gemm_max(1, s->m / (2 * most)));
}

ts_status ts_gemm_run_small(const gemm_run *run) {
  const ts_gemm_shape *s = &run->shape;
  small_plan p = {.run = run, .g = &run->gemm->geometry, .packs = packs_columns(s)};
  void *memory = NULL;
  p.tile_cols = (int64_t)p.g->vectors * p.g->lanes;
  plan_parts(&p);
  plan_tasks(&p);
  p.rhs_bytes = p.packs ? gemm_round_up(packed_bytes(p.g, s), TS_POOL_ALIGNMENT) : 0;
  const int64_t bytes = p.rhs_bytes * p.parallel->width;
  if (p.packs) TS_TRY(ts_pool_alloc(run->pool, bytes, &memory));
  p.workers = memory;
  ts_parallel_run(p.parallel, gemm_ceil_div(s->batch, p.task_batches) * p.row_tasks, small_task, &p);
  if (p.packs) ts_pool_free(run->pool, memory, bytes);
  return ts_check_cancelled(run->cancel, "a matrix product");
}

/* The largest packed rhs that pays. With few registers these tiles are lower than tiles of packed operands, and lose to
 * them sooner. A rhs as large as the second cache pays where one tile is all rows, and AXPY has too many vectors. */
static int64_t most_bytes(const ts_gemm_geometry *g, const ts_gemm_shape *s) {
  const int64_t l2 = ts_target_host()->l2_bytes;
  if (g->small < TALL_TILE) return l2 / 16;
  return s->m > TS_GEMM_FEW_ITEMS && s->m <= g->small ? l2 : l2 / 2;
}

bool ts_gemm_is_small(const ts_gemm *gemm, const ts_gemm_shape *s) {
  const ts_gemm_geometry *g = &gemm->geometry;
  if (!gemm->native || gemm->complex || gemm->scaled || gemm->depth > 1) return false;
  if (gemm->types.lhs != gemm->types.out || gemm->types.rhs != gemm->types.out || s->k > TS_CONTRACT_BLOCK)
    return false;
  if (!g->small_masked && s->n % g->lanes != 0) return false;
  if (packs_columns(s)) return s->m > TS_GEMM_WEIGHT_ROWS || s->n * s->k < TS_GEMM_WEIGHT_ELEMENTS;
  return packed_bytes(g, s) <= most_bytes(g, s);
}
