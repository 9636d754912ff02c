#include "kernel/gemm/gemm_plan.h"

#include "kernel/gemm/gemm_amx.h"

/* Products with fewer multiplications of vectors stay on one thread, as they take 10 us: waking another costs as much.
 * To write a vector of results takes as long as WRITE_TERMS of them. */
#define PARALLEL_MIN (48 << 10)
#define WRITE_TERMS 8
#define PARALLEL_MIN_AMX (6 << 20)
/* When each task packs all of lhs there are fewer tasks, each with at least COLUMN_TASK_PANELS panels of rhs. */
#define COLUMN_TASKS_PER_WORKER 1
#define COLUMN_TASK_PANELS 4
/* Limit for the packed rhs of one phase: fresh pages cost more than the wait for the last task of a phase. */
#define PHASE_BYTES (INT64_C(6) << 20)

/* Steps in a block of k of a product by AMX. A panel of lhs stays in L1, unless one operand has no second panel: then
 * the rows of the other operand are read in pieces that are as long as L2 allows. */
static int64_t steps_by_amx(const gemm_plan *p) {
  const int64_t l2 = ts_target_host()->l2_bytes, panel = p->tile_cols * p->g->element_size;
  if (p->run->gemm->own == GEMM_CHAIN_BF16) return ts_target_host()->l1_bytes / 2 / panel;
  if (p->run->gemm->own != GEMM_AMX_BF16) return TS_GEMM_AMX_STEPS;
  const bool few_rows = p->shape.m <= p->g->panel && !p->run->packed;
  if (p->shape.n <= p->tile_cols || (few_rows && p->shape.rhs_row == p->depth))
    return gemm_max(TS_GEMM_AMX_STEPS, l2 / 8 / panel);
  if (!few_rows) return TS_GEMM_AMX_STEPS;
  return gemm_min(TS_GEMM_AMX_STEPS, l2 / 2 / gemm_ceil_div(p->shape.n, p->tile_cols) / panel);
}

/* Cuts k into equal blocks such that a panel of rhs stays in L1. */
static void plan_k(gemm_plan *p) {
  const int64_t chain = p->run->gemm->own == GEMM_CHAIN_BF16 ? p->run->chain / p->depth : p->run->chain;
  const int64_t unit = chain < p->shape.k ? chain : p->run->gemm->complex ? 2 : 1;
  int64_t most = gemm_max(TS_GEMM_LEFT_STEPS, ts_target_host()->l1_bytes / (p->tile_cols * p->g->element_size));
  if (p->run->gemm->own) most = steps_by_amx(p);
  most = gemm_max(most / unit, 1) * unit; /* whole chains, or whole complex numbers */
  p->k_blocks = gemm_ceil_div(p->shape.k, most);
  p->kc = gemm_round_up(gemm_ceil_div(p->shape.k, p->k_blocks), unit);
  p->k_blocks = gemm_ceil_div(p->shape.k, p->kc);
  p->lhs_panel_bytes = p->kc * p->g->panel * p->g->element_size;
  p->rhs_panel_bytes = p->kc * p->tile_cols * p->g->element_size;
  p->group_panels = gemm_max(1, ts_target_host()->l2_bytes / 3 / p->rhs_panel_bytes);
}

bool ts_gemm_tiles_are_large(const ts_gemm *gemm, const ts_gemm_shape *s) {
  const int64_t results = s->batch * s->m * s->n;
  if (gemm->own == GEMM_AMX_BF16) return results >= PARALLEL_MIN_AMX / s->k;
  return results >= PARALLEL_MIN * gemm->geometry.lanes / (s->k + WRITE_TERMS);
}

bool ts_gemm_plan_is_direct(const gemm_plan *p) {
  const ts_gemm_shape *s = &p->shape;
  const ts_gemm *gemm = p->run->gemm;
  if (p->run->quantized || gemm_shares_lines(p->g, s)) return false;
  bool contiguous =
      gemm->native && !gemm->complex && gemm->types.rhs == gemm->types.out && s->rhs_col == 1 && s->rhs_row >= 0;
  return contiguous && s->k * s->rhs_row * gemm->size <= ts_target_host()->l2_bytes / 2;
}

static bool is_own_rhs(const ts_gemm_shape *s) { return s->rhs_batch != 0 || s->batch == 1; }

/* With few rows, lhs stays in L2: then tasks are columns, and each uses the part of rhs that it packs at once; tasks of
 * rows would all read a packed rhs from memory. 0 when tasks are rows. */
static int64_t count_column_tasks(const gemm_plan *p) {
  const ts_epilogue *epilogue = p->run->epilogue;
  int64_t tasks = gemm_min((int64_t)p->parallel->width * COLUMN_TASKS_PER_WORKER, p->col_panels / COLUMN_TASK_PANELS);
  bool fits = p->row_panels * p->lhs_panel_bytes <= ts_target_host()->l2_bytes / 4;
  bool whole_rows = epilogue && epilogue->whole_rows; /* the epilogue should run while rows are in cache, too */
  return fits && !whole_rows && tasks >= p->parallel->width && is_own_rhs(&p->shape) && !ts_gemm_plan_is_direct(p)
             ? tasks
             : 0;
}

/* A task keeps partial results in a second copy, which every block of k reads and writes: it stays in L2. */
static void limit_partial(gemm_plan *p) {
  const int64_t row = ts_target_host()->l2_bytes / 4 / (p->shape.m * p->g->element_size);
  const int64_t most = gemm_max(1024, row) / p->tile_cols;
  p->col_tasks = gemm_max(p->col_tasks, gemm_ceil_div(p->col_panels, most));
  const int64_t cols = gemm_ceil_div(p->col_panels, p->col_tasks) * p->tile_cols;
  const int64_t space = ts_target_host()->l2_bytes / (p->run->gemm->own ? 8 : 2);
  const int64_t rows = space / (cols * p->g->element_size);
  p->row_tasks = gemm_max(p->row_tasks, gemm_ceil_div(p->row_panels, gemm_max(1, rows / p->g->rows[0])));
}

/* Columns of a task by AMX: at least that many share the packing of a row of lhs. */
#define OWN_PANELS 8
#define OWN_TASKS_PER_WORKER 2
/* A worker may join when the caller has ended its first task (exec/pool.c): that is a small part of the product. */
#define OWN_TASKS 16

/* Tasks of run_rows. */
static void plan_own_tasks(gemm_plan *p) {
  const int64_t l2 = ts_target_host()->l2_bytes, panel = p->shape.k * p->tile_cols * p->g->element_size;
  const int64_t all = gemm_max(OWN_TASKS, (int64_t)p->parallel->width * OWN_TASKS_PER_WORKER);
  const int64_t wanted = p->parallel->width > 1 ? gemm_ceil_div(all, p->shape.batch) : 1;
  const ts_epilogue *epilogue = p->run->epilogue;
  const bool fits = panel * OWN_PANELS <= l2 / 2;
  const int64_t most = fits ? l2 / 2 / panel : 2 * OWN_PANELS;
  p->col_tasks = gemm_ceil_div(p->col_panels, most);
  if (!epilogue || !epilogue->whole_rows || p->col_tasks > 1)
    p->col_tasks = gemm_max(p->col_tasks, gemm_min(wanted, p->col_panels / OWN_PANELS));
  p->row_tasks = gemm_min(gemm_ceil_div(wanted, p->col_tasks), p->row_panels);
  if (p->row_tasks * p->col_tasks < wanted) p->col_tasks = gemm_min(gemm_ceil_div(wanted, p->row_tasks), p->col_panels);
  const int64_t panels = gemm_ceil_div(p->col_panels, p->col_tasks);
  p->chunk_k = p->shape.k;
  if (fits) return;
  const int64_t row = panels * p->tile_cols * p->g->element_size;
  p->chunk_k = gemm_max(1, l2 / 2 / (p->kc * row)) * p->kc;
  p->row_tasks = gemm_max(p->row_tasks, gemm_ceil_div(p->row_panels, gemm_max(1, l2 / 4 / row / p->g->rows[0])));
}

/* Cuts the result into tasks: enough of them to keep all workers busy. */
static void plan_tasks(gemm_plan *p) {
  const ts_gemm_shape *s = &p->shape;
  p->row_panels = gemm_ceil_div(s->m, p->g->rows[0]);
  p->col_panels = gemm_ceil_div(s->n, p->tile_cols);
  p->parallel = ts_gemm_tiles_are_large(p->run->gemm, s) ? p->run->parallel : &ts_parallel_serial;
  p->by_rows = p->run->gemm->own && p->row_panels > 1;
  if (p->by_rows) {
    plan_own_tasks(p);
    return;
  }
  const int64_t space =
      p->kc > TS_GEMM_AMX_STEPS && p->run->gemm->own ? ts_target_host()->l2_bytes / 4 : ts_target_host()->l2_bytes;
  p->row_tasks = gemm_ceil_div(p->row_panels, gemm_max(1, space / p->lhs_panel_bytes));
  p->col_tasks = 1;
  int64_t column_tasks = p->parallel->width > 1 ? count_column_tasks(p) : 0;
  if (column_tasks > 0) {
    p->col_tasks = column_tasks;
  } else if (p->parallel->width > 1) {
    int64_t wanted = gemm_ceil_div((int64_t)p->parallel->width * TS_GEMM_TILE_TASKS, s->batch);
    p->row_tasks = gemm_max(p->row_tasks, gemm_min(wanted, gemm_max(1, p->row_panels / 2)));
    if (p->row_tasks < wanted) p->col_tasks = gemm_min(gemm_ceil_div(wanted, p->row_tasks), p->col_panels);
  }
  if (!p->run->native) limit_partial(p);
}

/* A task has no less than this part of a thread's rows: it reads all columns of rhs. */
#define LEAST_PART 32

/* To write a packed rhs that all threads have read takes several times as long as one that a single thread has, since
 * the others' copies of its lines have to go first. So where tasks are parts of the columns anyway, a worker packs
 * those that it computes. */
static bool keeps_columns(const gemm_plan *p) {
  const bool packs = !p->run->packed && !p->run->gemm->scaled;
  return p->by_rows && packs && p->shape.batch == 1 && p->parallel->width > 1 && gemm_is_one_chunk(p) &&
         p->row_tasks > 1 && p->col_tasks >= p->parallel->width && p->col_tasks <= GEMM_MOST_KEPT;
}

static void cut_tasks(gemm_plan *p) {
  const int64_t groups = p->shape.batch * p->col_tasks, width = p->parallel->width;
  const int64_t most = gemm_ceil_div(p->row_panels, p->row_tasks);
  p->last = (gemm_cut){p->row_panels, most, gemm_max(1, p->row_panels / (LEAST_PART * width)), width};
  if (p->row_tasks == 1 || p->last.least > most) p->last.least = most;
  p->tasks = (groups - 1) * p->row_tasks + gemm_cut_tasks(&p->last);
  if (p->keeps) p->tasks = groups * gemm_cut_tasks(&p->last);
}

/* Tiles of so few rows are soon done with a panel, and would wait for the next ones from memory. */
#define FETCH_ROW_PANELS 16
/* Each group of panels fetches the next one meanwhile. The first group of a task is waited for, so groups are small. */
#define FETCHED_GROUP(l2) ((l2) / 10)

static void plan_rhs(gemm_plan *p) {
  const ts_gemm_shape *s = &p->shape;
  p->mode = GEMM_RHS_SHARED;
  if (ts_gemm_plan_is_direct(p) && !p->run->packed) {
    p->mode = GEMM_RHS_DIRECT;
  } else if (p->keeps || (p->row_tasks == 1 && is_own_rhs(s) && !p->run->packed)) {
    p->mode = GEMM_RHS_PRIVATE;
    const int64_t part = p->run->gemm->own == GEMM_AMX_BF16 ? 2 : 8;
    p->group_panels = gemm_max(1, ts_target_host()->l2_bytes / part / p->rhs_panel_bytes);
  }
  p->rhs_batches = s->rhs_batch == 0 ? 1 : s->batch;
  p->fetches_panels = p->mode == GEMM_RHS_SHARED && !p->run->gemm->own &&
                      gemm_ceil_div(p->row_panels, p->row_tasks) <= FETCH_ROW_PANELS;
  if (p->fetches_panels) p->group_panels = gemm_max(1, FETCHED_GROUP(ts_target_host()->l2_bytes) / p->rhs_panel_bytes);
}

/* Complex numbers are packed twice: as much as the second caches of a few workers hold is read again from there. Real
 * ones gain nothing, and more workers would wait longer. */
static int64_t phase_bytes(const gemm_plan *p) {
  if (!p->run->gemm->complex) return PHASE_BYTES;
  return gemm_min(PHASE_BYTES, ts_target_host()->l2_bytes / 2 * p->parallel->width);
}

/* Partial results outside of `out` end with their task, which then has to cover all of k in one phase. */
static void plan_phases(gemm_plan *p) {
  int64_t block = p->rhs_panel_bytes * p->col_panels, blocks = p->k_blocks;
  if (p->mode == GEMM_RHS_SHARED && p->run->native && !p->run->packed)
    blocks = gemm_min(blocks, gemm_max(1, phase_bytes(p) / block / p->rhs_batches));
  p->phase_k = gemm_min(blocks * p->kc, p->shape.k);
}

/* Rows of partial results are an odd number of cache lines: those of a tile would share the same lines of L1. */
#define PARTIAL_PAD 64

static ts_status plan_space(gemm_plan *p) {
  int size = p->g->element_size;
  int64_t rows = gemm_ceil_div(p->row_panels, p->row_tasks);
  p->task_rows = rows * p->g->rows[0];
  p->task_panels = gemm_ceil_div(p->col_panels, p->col_tasks);
  p->lhs_bytes = ts_pool_padded((p->by_rows ? 1 : rows) * p->lhs_panel_bytes);
  p->rhs_bytes =
      p->mode == GEMM_RHS_SHARED
          ? 0
          : p->rhs_panel_bytes * (p->mode == GEMM_RHS_DIRECT ? 1 : gemm_min(p->group_panels, p->task_panels));
  if (p->by_rows && p->mode == GEMM_RHS_PRIVATE) p->rhs_bytes = p->chunk_k * p->task_panels * p->tile_cols * size;
  p->rhs_bytes = ts_pool_padded(p->rhs_bytes);
  const int64_t sums = p->by_rows && gemm_is_one_chunk(p) ? p->g->rows[0] : p->task_rows;
  p->partial_row = p->task_panels * p->tile_cols * size + PARTIAL_PAD;
  p->partial_bytes = p->run->native ? 0 : sums * p->partial_row;
  p->partial_bytes = ts_pool_padded(p->partial_bytes);
  p->worker_bytes = p->lhs_bytes + p->rhs_bytes + p->partial_bytes;
  if (p->parallel->width > 1) p->worker_bytes += TS_GEMM_WORKER_GAP;
  if (p->mode != GEMM_RHS_SHARED || p->run->packed) return TS_SUCCESS;
  int64_t row = p->col_panels * p->tile_cols * size;
  if (!ts_mul_i64(row, p->phase_k, &p->shared_bytes) || !ts_mul_i64(p->shared_bytes, p->rhs_batches, &p->shared_bytes))
    return ts_error(TS_RESOURCE_EXHAUSTED, "matrix product needs too much packing space");
  return TS_SUCCESS;
}

ts_status ts_gemm_plan_make(gemm_plan *p) {
  const ts_gemm *gemm = p->run->gemm;
  p->g = &gemm->geometry;
  p->tile_cols = (int64_t)p->g->vectors * p->g->lanes;
  plan_k(p);
  plan_tasks(p);
  p->keeps = keeps_columns(p);
  cut_tasks(p);
  plan_rhs(p);
  plan_phases(p);
  const ts_gemm_shape *s = &p->shape;
  const int cols = (int)p->tile_cols;
  const ts_gemm_compute compute = p->g->compute;
  p->pack_lhs = (gemm_pack){gemm->types.lhs, compute, s->lhs_row, s->lhs_col / p->depth, p->g->rows[0], p->g->panel,
                            GEMM_REAL,       NULL,    0,          TS_DTYPE_NONE};
  p->pack_rhs = (gemm_pack){gemm->types.rhs, compute, s->rhs_col, s->rhs_row / p->depth, cols, cols,
                            GEMM_REAL,       NULL,    0,          TS_DTYPE_NONE};
  if (gemm->complex) p->pack_rhs.numbers = GEMM_RIGHT;
  if (gemm->complex && s->lhs_col != 1) p->pack_lhs.numbers = GEMM_LEFT; /* else each row is one of parts */
  bool parts = p->col_tasks > 1 || s->n < p->run->shape.n;
  p->shows_rows = parts && p->run->epilogue && p->run->epilogue->whole_rows;
  return plan_space(p);
}
