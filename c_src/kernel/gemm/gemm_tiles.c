/* Products by tiles: the operands are packed into panels, and tasks compute tiles of the result from them. */
#include "kernel/gemm/gemm_bf16.h"
#include "kernel/gemm/gemm_internal.h"
#include "kernel/gemm/gemm_quads.h"
#include "kernel/gemm/quantized.h"

#include <string.h>

/* ---- the plan of one run ---- */

/* Products with fewer multiplications stay on one thread: waking another costs as much. */
#define PARALLEL_MIN (768 << 10)
#define PARALLEL_MIN_AMX (6 << 20)
/* When each task packs all of lhs there are fewer tasks, each with at least COLUMN_TASK_PANELS panels of rhs. */
#define COLUMN_TASKS_PER_WORKER 2
#define COLUMN_TASK_PANELS 4
#define PACK_PANELS 8 /* panels of rhs in one task of shared packing */
/* Limit for the packed rhs of one pass when k is done in one phase; larger products take several passes. */
#define SHARED_MAX_BYTES (INT64_C(128) << 20)
/* Limit for the packed rhs of one phase: fresh pages cost more than the wait for the last task of a phase. */
#define PHASE_BYTES (INT64_C(6) << 20)

typedef enum rhs_mode {
  RHS_DIRECT, /* whole panels are read unpacked; a last partial one is packed by each task */
  RHS_SHARED, /* packed once, by all workers, before the tasks of a phase start */
  RHS_PRIVATE /* packed by the task, its only reader, group by group */
} rhs_mode;

typedef struct plan {
  const gemm_run *run;
  const ts_parallel *parallel; /* serial for small products */
  const ts_gemm_geometry *g;
  ts_gemm_shape shape; /* of this pass; k and its strides count steps of `depth` */
  int depth;           /* the gemm's */
  int64_t k;           /* the product's */
  const char *lhs, *rhs;
  int64_t first_batch, first_col; /* first ones of this pass */
  int64_t tile_cols;              /* full tile width */
  int64_t kc, k_blocks;
  int64_t phase, phase_k;         /* the blocks of k of one phase: the first k, and the number at most */
  int64_t row_panels, col_panels; /* the panels of the whole result */
  int64_t row_tasks, col_tasks;
  int64_t task_rows, task_panels; /* limits of one task: rows in lhs panels, panels of rhs */
  int64_t group_panels;           /* panels of rhs that fit into L2 */
  rhs_mode mode;
  bool shows_rows; /* the epilogue takes whole rows, but tasks have parts of them: it runs after them */
  gemm_pack pack_lhs, pack_rhs;
  int64_t lhs_panel_bytes, rhs_panel_bytes;
  int64_t rhs_batches;
  int64_t shared_bytes, lhs_bytes, rhs_bytes, partial_bytes, worker_bytes;
  char *shared, *workers;
  _Atomic bool *has_tiny; /* of gemm_bf16.h: whether a packed operand has such numbers */
} plan;

/* Steps in a block of k of a product by AMX. A panel of each operand stays in L1, unless one of them has no other: then
 * the rows of the other operand are read in pieces that are as long as L2 allows. */
static int64_t steps_by_amx(const plan *p) {
  const int64_t l2 = ts_target_host()->l2_bytes, panel = p->tile_cols * p->g->element_size;
  if (p->run->gemm->own != GEMM_AMX_BF16) return TS_GEMM_AMX_STEPS;
  const bool few_rows = p->shape.m <= p->g->panel && !p->run->packed;
  if (p->shape.n <= p->tile_cols || (few_rows && p->shape.rhs_row == p->depth))
    return gemm_max(TS_GEMM_AMX_STEPS, l2 / 8 / panel);
  if (!few_rows) return TS_GEMM_AMX_STEPS;
  return gemm_min(TS_GEMM_AMX_STEPS, l2 / 2 / gemm_ceil_div(p->shape.n, p->tile_cols) / panel);
}

/* Cuts k into equal blocks such that a panel of rhs stays in L1. */
static void plan_k(plan *p) {
  const int64_t unit = p->run->chain < p->shape.k ? p->run->chain : p->run->gemm->complex ? 2 : 1;
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
  return s->batch * s->m * s->n >= (gemm->own == GEMM_AMX_BF16 ? PARALLEL_MIN_AMX : PARALLEL_MIN) / s->k;
}

/* True when rhs is small enough for all tasks to read it unpacked. */
static bool is_direct(const plan *p) {
  const ts_gemm_shape *s = &p->shape;
  const ts_gemm *gemm = p->run->gemm;
  if (p->run->quantized) return false;
  bool contiguous =
      gemm->native && !gemm->complex && gemm->types.rhs == gemm->types.out && s->rhs_col == 1 && s->rhs_row >= 0;
  return contiguous && s->k * s->rhs_row * gemm->size <= ts_target_host()->l2_bytes / 2;
}

static bool is_own_rhs(const ts_gemm_shape *s) { return s->rhs_batch != 0 || s->batch == 1; }

/* With few rows, lhs stays in L2: then tasks are columns, and each uses the part of rhs that it packs at once; tasks of
 * rows would all read a packed rhs from memory. 0 when tasks are rows. */
static int64_t count_column_tasks(const plan *p) {
  const ts_epilogue *epilogue = p->run->epilogue;
  int64_t tasks = gemm_min((int64_t)p->parallel->width * COLUMN_TASKS_PER_WORKER, p->col_panels / COLUMN_TASK_PANELS);
  bool fits = p->row_panels * p->lhs_panel_bytes <= ts_target_host()->l2_bytes / 4;
  bool whole_rows = epilogue && epilogue->whole_rows; /* the epilogue should run while rows are in cache, too */
  return fits && !whole_rows && tasks >= p->parallel->width && is_own_rhs(&p->shape) && !is_direct(p) ? tasks : 0;
}

/* A task keeps partial results in a second copy, which every block of k reads and writes: it stays in L2. */
static void limit_partial(plan *p) {
  const int64_t row = ts_target_host()->l2_bytes / 4 / (p->shape.m * p->g->element_size);
  const int64_t most = gemm_max(1024, row) / p->tile_cols;
  p->col_tasks = gemm_max(p->col_tasks, gemm_ceil_div(p->col_panels, most));
  const int64_t cols = gemm_ceil_div(p->col_panels, p->col_tasks) * p->tile_cols;
  const int64_t space = ts_target_host()->l2_bytes / (p->run->gemm->own ? 8 : 2);
  const int64_t rows = space / (cols * p->g->element_size);
  p->row_tasks = gemm_max(p->row_tasks, gemm_ceil_div(p->row_panels, gemm_max(1, rows / p->g->rows[0])));
}

/* Cuts the result into tasks: enough of them to keep all workers busy. */
static void plan_tasks(plan *p) {
  const ts_gemm_shape *s = &p->shape;
  const int64_t space =
      p->kc > TS_GEMM_AMX_STEPS && p->run->gemm->own ? ts_target_host()->l2_bytes / 4 : ts_target_host()->l2_bytes;
  int64_t most_panels = gemm_max(1, space / p->lhs_panel_bytes);
  p->row_panels = gemm_ceil_div(s->m, p->g->rows[0]);
  p->col_panels = gemm_ceil_div(s->n, p->tile_cols);
  p->row_tasks = gemm_ceil_div(p->row_panels, most_panels);
  p->col_tasks = 1;
  p->parallel = ts_gemm_tiles_are_large(p->run->gemm, s) ? p->run->parallel : &ts_parallel_serial;
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

static void plan_rhs(plan *p) {
  const ts_gemm_shape *s = &p->shape;
  p->mode = RHS_SHARED;
  if (is_direct(p) && !p->run->packed) {
    p->mode = RHS_DIRECT;
  } else if (p->row_tasks == 1 && is_own_rhs(s) && !p->run->packed) {
    p->mode = RHS_PRIVATE;
    const int64_t part = p->run->gemm->own == GEMM_AMX_BF16 ? 2 : 8;
    p->group_panels = gemm_max(1, ts_target_host()->l2_bytes / part / p->rhs_panel_bytes);
  }
  p->rhs_batches = s->rhs_batch == 0 ? 1 : s->batch;
}

/* Complex numbers are packed twice: as much as the second caches of a few workers hold is read again from there. Real
 * ones gain nothing, and more workers would wait longer. */
static int64_t phase_bytes(const plan *p) {
  if (!p->run->gemm->complex) return PHASE_BYTES;
  return gemm_min(PHASE_BYTES, ts_target_host()->l2_bytes / 2 * p->parallel->width);
}

/* Partial results outside of `out` end with their task, which then has to cover all of k in one phase. */
static void plan_phases(plan *p) {
  int64_t block = p->rhs_panel_bytes * p->col_panels, blocks = p->k_blocks;
  if (p->mode == RHS_SHARED && p->run->native && !p->run->packed)
    blocks = gemm_min(blocks, gemm_max(1, phase_bytes(p) / block / p->rhs_batches));
  p->phase_k = gemm_min(blocks * p->kc, p->shape.k);
}

static ts_status plan_space(plan *p) {
  int size = p->g->element_size;
  int64_t rows = gemm_ceil_div(p->row_panels, p->row_tasks);
  p->task_rows = rows * p->g->rows[0];
  p->task_panels = gemm_ceil_div(p->col_panels, p->col_tasks);
  p->lhs_bytes = gemm_round_up(rows * p->lhs_panel_bytes, TS_POOL_ALIGNMENT);
  p->rhs_bytes = p->mode == RHS_SHARED
                     ? 0
                     : p->rhs_panel_bytes * (p->mode == RHS_DIRECT ? 1 : gemm_min(p->group_panels, p->task_panels));
  p->rhs_bytes = gemm_round_up(p->rhs_bytes, TS_POOL_ALIGNMENT);
  p->partial_bytes = p->run->native ? 0 : p->task_rows * p->task_panels * p->tile_cols * size;
  p->partial_bytes = gemm_round_up(p->partial_bytes, TS_POOL_ALIGNMENT);
  p->worker_bytes = p->lhs_bytes + p->rhs_bytes + p->partial_bytes;
  if (p->mode != RHS_SHARED || p->run->packed) return TS_SUCCESS;
  int64_t row = p->col_panels * p->tile_cols * size;
  if (!ts_mul_i64(row, p->phase_k, &p->shared_bytes) || !ts_mul_i64(p->shared_bytes, p->rhs_batches, &p->shared_bytes))
    return ts_error(TS_RESOURCE_EXHAUSTED, "matrix product needs too much packing space");
  return TS_SUCCESS;
}

static ts_status plan_make(plan *p) {
  const ts_gemm *gemm = p->run->gemm;
  p->g = &gemm->geometry;
  p->tile_cols = (int64_t)p->g->vectors * p->g->lanes;
  plan_k(p);
  plan_tasks(p);
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

/* The elements of k in `steps` steps from step k on. */
static int64_t elements_of(const plan *p, int64_t k, int64_t steps) {
  return gemm_min(steps * p->depth, p->k - k * p->depth);
}

/* ---- shared packing of rhs ---- */

/* Bytes of a packed panel of rhs. */
static int64_t panel_bytes(const plan *p, int64_t kc) { return kc * p->tile_cols * p->g->element_size; }

static char *shared_panel(const plan *p, int64_t batch, int64_t k, int64_t panel, int64_t kc) {
  int64_t before = (batch * p->phase_k + k - p->phase) * p->col_panels + panel * kc;
  return p->shared + before * p->tile_cols * p->g->element_size;
}

static int64_t phase_end(const plan *p) { return gemm_min(p->phase + p->phase_k, p->shape.k); }
static int64_t phase_blocks(const plan *p) { return gemm_ceil_div(phase_end(p) - p->phase, p->kc); }

/* How operand 0 or 1 is packed, from a row or column of a batch on. */
static gemm_pack scaled_from(const plan *p, int operand, int64_t batch, int64_t unit) {
  const ts_gemm_scale *scale = p->run->scale;
  gemm_pack pack = operand ? p->pack_rhs : p->pack_lhs;
  if (!scale || scale->operand != operand) return pack;
  if (operand) unit += p->first_col;
  const int64_t at = (p->first_batch + batch) * scale->batch + unit * scale->unit;
  pack.scale_type = p->run->gemm->types.out;
  pack.scale_unit = scale->unit;
  pack.scale = (const char *)scale->at + at * (int64_t)ts_dtype_size(pack.scale_type);
  return pack;
}

/* Packs columns and `k` elements of rhs. */
static void pack_rhs(const plan *p, const gemm_pack *pack, const char *from, int64_t units, int64_t k, char *panels) {
  if (ts_gemm_has_quads(p->run->gemm)) {
    ts_gemm_quads_pack_right(pack, from, units, k, panels);
    return;
  }
  if (!p->run->gemm->own)
    ts_gemm_pack(pack, from, units, k, panels, panel_bytes(p, gemm_ceil_div(k, p->depth)));
  else if (ts_gemm_bf16_pack_right(pack, from, units, k, panels))
    atomic_store_explicit(p->has_tiny, true, memory_order_relaxed);
}

/* Columns [col, col + cols) of rhs, of `steps` steps from step k on. */
static void pack_quantized(const plan *p, int64_t col, int64_t cols, int64_t k, int64_t steps, char *panels) {
  const ts_quantized *weight = p->run->quantized;
  const ts_quantized_code *code = ts_quantized_host();
  const int64_t width = p->tile_cols, elements = elements_of(p, k, steps);
  for (int64_t c = 0; c < cols; c += width, panels += panel_bytes(p, steps)) {
    const int64_t at = p->first_col + col + c;
    const ts_quantized_part part = {at / TS_QUANTIZED_COLS, at % TS_QUANTIZED_COLS, width,
                                    p->run->first_k + k * p->depth, elements};
    if (!p->run->gemm->own)
      code->unpack(weight, part, (float *)(void *)panels, width);
    else if (code->pairs(weight, part, (uint32_t *)(void *)panels, width))
      atomic_store_explicit(p->has_tiny, true, memory_order_relaxed);
  }
}

static void pack_task(void *arg, int64_t task, int worker) {
  (void)worker;
  const plan *p = arg;
  const ts_gemm_shape *s = &p->shape;
  if (gemm_cancelled(p->run)) return;
  int64_t groups = gemm_ceil_div(p->col_panels, PACK_PANELS);
  int64_t panel = task % groups * PACK_PANELS, blocks = phase_blocks(p);
  int64_t batch = task / groups / blocks, k = p->phase + task / groups % blocks * p->kc;
  int64_t kc = gemm_min(p->kc, s->k - k), col = panel * p->tile_cols;
  int64_t cols = gemm_min(PACK_PANELS * p->tile_cols, s->n - col);
  if (p->run->quantized) {
    pack_quantized(p, col, cols, k, kc, shared_panel(p, batch, k, panel, kc));
    return;
  }
  const char *from = p->rhs + (batch * s->rhs_batch + k * s->rhs_row + col * s->rhs_col) * p->run->gemm->rhs_size;
  const gemm_pack pack = scaled_from(p, 1, batch, col);
  pack_rhs(p, &pack, from, cols, elements_of(p, k, kc), shared_panel(p, batch, k, panel, kc));
}

/* ---- tiles ---- */

/* The tile height to use first when `rows` are left: less waste first, then fewer tiles. */
static int pick_height(const ts_gemm_geometry *g, int64_t rows) {
  return rows > g->rows[1] + g->rows[2] ? 0 : rows > g->rows[2] ? 1 : 2;
}

/* Computes a tile that extends past the edge in a separate buffer. */
static void run_edge_tile(ts_kernel_fn kernel, int64_t *args, int variant, int64_t rows, int64_t row_bytes,
                          int64_t tile_bytes) {
  _Alignas(64) char aside[TS_GEMM_MAX_HEIGHT * 2 * TS_GEMM_MAX_LANES * 4];
  int64_t out = args[TS_GEMM_OUT], stride = args[TS_GEMM_OUT_STRIDE];
  char *to = (char *)(intptr_t)out;
  memset(aside, 0, sizeof(aside));
  if (args[TS_GEMM_CONTINUE] || args[TS_GEMM_ADDS])
    for (int64_t r = 0; r < rows; r++) memcpy(aside + r * tile_bytes, to + r * stride, (size_t)row_bytes);
  args[TS_GEMM_OUT] = (int64_t)(intptr_t)aside;
  args[TS_GEMM_OUT_STRIDE] = tile_bytes;
  kernel(args, variant, variant + 1, NULL);
  for (int64_t r = 0; r < rows; r++) memcpy(to + r * stride, aside + r * tile_bytes, (size_t)row_bytes);
  args[TS_GEMM_OUT] = out;
  args[TS_GEMM_OUT_STRIDE] = stride;
}

/* ---- tasks ---- */

typedef struct task {
  const plan *p;
  int64_t batch, row, rows, col, cols; /* of the pass */
  int64_t k, kc;                       /* the block of k that is being added */
  int64_t group;                       /* RHS_PRIVATE: the first packed column of rhs */
  char *lhs_space, *rhs_space, *partial;
  char *out;          /* out itself, or partial results */
  int64_t out_stride; /* bytes */
} task;

static const char *rhs_address(const task *t, int64_t col) {
  const ts_gemm_shape *s = &t->p->shape;
  int64_t at = t->batch * s->rhs_batch + t->k * s->rhs_row + (t->col + col) * s->rhs_col;
  return t->p->rhs + at * t->p->run->gemm->rhs_size;
}

/* Rows that lie anywhere, panel by panel; some of them when cancelled. */
static void pack_rows(const task *t) {
  const plan *p = t->p;
  const ts_gemm_rows *lhs = p->run->rows;
  int size = p->g->element_size;
  _Alignas(64) char state[TS_GEMM_ROW_STATE];
  const char *rows[TS_GEMM_MAX_ROWS + 3];
  for (int64_t row = 0; row < t->rows && !gemm_cancelled(p->run); row += p->g->rows[0]) {
    int64_t units = gemm_min(p->g->rows[0], t->rows - row);
    char *panel = t->lhs_space + row / p->g->rows[0] * t->kc * p->g->panel * size;
    lhs->start(lhs->context, p->first_batch + t->batch, t->row + row, units, state);
    for (int64_t k = 0; k < t->kc;) {
      int64_t run = gemm_min(lhs->find(lhs->context, state, p->run->first_k + t->k + k, rows), t->kc - k);
      ts_gemm_pack_rows(&p->pack_lhs, rows, units, run, panel + k * p->g->panel * size);
      k += run;
    }
  }
}

static void pack_lhs(const task *t, const char *from, int64_t k) {
  const plan *p = t->p;
  const gemm_pack pack = scaled_from(p, 0, t->batch, t->row);
  const gemm_amx_product own = p->run->gemm->own;
  if (ts_gemm_has_quads(p->run->gemm)) {
    ts_gemm_quads_pack_left(&pack, own, from, t->rows, k, t->lhs_space);
    return;
  }
  if (own) {
    if (ts_gemm_bf16_pack_left(&pack, from, t->rows, k, t->lhs_space))
      atomic_store_explicit(p->has_tiny, true, memory_order_relaxed);
    return;
  }
  ts_gemm_pack(&pack, from, t->rows, k, t->lhs_space, t->kc * p->g->panel * p->g->element_size);
}

/* Packs the operands of the whole block of k, unless they are packed already. */
static void pack_block(const task *t) {
  const plan *p = t->p;
  const ts_gemm_shape *s = &p->shape;
  int64_t at = t->batch * s->lhs_batch + t->row * s->lhs_row + t->k * s->lhs_col, k = elements_of(p, t->k, t->kc);
  if (p->run->rows)
    pack_rows(t);
  else if (!p->run->left)
    pack_lhs(t, p->lhs + at * p->run->gemm->lhs_size, k);
  int64_t rest = t->cols % p->tile_cols;
  if (p->mode == RHS_DIRECT && rest) /* it has the product's type: not scaled */
    ts_gemm_pack(&p->pack_rhs, rhs_address(t, t->cols - rest), rest, k, t->rhs_space, panel_bytes(p, t->kc));
}

/* Packs the rhs of one group of columns. */
static void pack_group(task *t, int64_t first, int64_t end) {
  const plan *p = t->p;
  t->group = first;
  if (p->mode != RHS_PRIVATE) return;
  if (p->run->quantized) {
    pack_quantized(p, t->col + first, end - first, t->k, t->kc, t->rhs_space);
    return;
  }
  const gemm_pack pack = scaled_from(p, 1, t->batch, t->col + first);
  pack_rhs(p, &pack, rhs_address(t, first), end - first, elements_of(p, t->k, t->kc), t->rhs_space);
}

/* The address of the panel that starts at the task's column `col`; also the bytes from k to k + 1. */
static const char *find_panel(const task *t, int64_t col, int64_t cols, int64_t *out_stride) {
  const plan *p = t->p;
  *out_stride = p->tile_cols * p->g->element_size;
  if (p->mode == RHS_SHARED)
    return shared_panel(p, p->shape.rhs_batch ? t->batch : 0, t->k, (t->col + col) / p->tile_cols, t->kc);
  if (p->mode == RHS_PRIVATE) return t->rhs_space + (col - t->group) / p->tile_cols * t->kc * *out_stride;
  if (cols < p->tile_cols) return t->rhs_space;
  *out_stride = p->shape.rhs_row * p->run->gemm->size;
  return rhs_address(t, col);
}

/* True where tiles by AMX round their results themselves: sums of all k. */
static bool rounds_tiles(const task *t) {
  const gemm_run *run = t->p->run;
  return run->gemm->own == GEMM_AMX_BF16 && !run->native && t->k + t->kc == t->p->shape.k;
}

/* The address in the run's results, of a row and a column of the task. */
static char *result_at(const task *t, int64_t row, int64_t col) {
  const plan *p = t->p;
  const int64_t batch = p->first_batch + t->batch, first = p->first_col + t->col + col;
  return p->run->out + (batch * p->shape.out_batch + (t->row + row) * p->shape.out_row + first) * p->run->size;
}

static void round_tile(const task *t, int64_t row, int64_t col, const gemm_amx_tile *tile) {
  const int64_t stride = t->p->shape.out_row * t->p->run->size;
  char *out = result_at(t, row, col);
  for (int64_t r = 0; r < tile->rows; r++, out += stride)
    ts_gemm_bf16_narrow(tile->to + r * tile->to_stride, tile->cols, out);
}

/* run_row by gemm_amx.c or gemm_quads.c. */
static void run_own_row(const task *t, int64_t row, int64_t rows, int64_t first, int64_t end) {
  const plan *p = t->p;
  _Alignas(64) char sums[32 * 32 * 4];
  const bool rounds = rounds_tiles(t);
  gemm_amx_tile tile = {.rows = rows,
                        .k = t->kc,
                        .lhs = t->lhs_space + row * t->kc * p->g->element_size,
                        .product = p->run->gemm->own,
                        .to = sums,
                        .out_stride = t->out_stride,
                        .to_stride = rounds ? p->tile_cols * p->g->element_size : t->out_stride,
                        .adds = t->k > 0,
                        .has_tiny = atomic_load_explicit(p->has_tiny, memory_order_relaxed)};
  for (int64_t col = first; col < end; col += p->tile_cols) {
    int64_t stride;
    tile.cols = gemm_min(p->tile_cols, end - col);
    tile.rhs = find_panel(t, col, tile.cols, &stride);
    char *out = t->out + row * t->out_stride + col * p->g->element_size;
    tile.out = out;
    if (!rounds) tile.to = out;
    ts_gemm_own_run(&tile);
    if (rounds) round_tile(t, row, col, &tile);
  }
  ts_gemm_own_end();
}

/* Computes columns [first, end) of the rows of one tile height: their lhs stays in L1. */
static void run_row(const task *t, int64_t row, int height, int64_t rows, int64_t first, int64_t end) {
  const plan *p = t->p;
  const ts_gemm_geometry *g = p->g;
  ts_kernel_fn kernel = ts_kernel_entry(p->run->gemm->kernels[TS_GEMM_TILE]);
  int size = g->element_size;
  const char *lhs = t->lhs_space + (row / g->rows[0] * t->kc * g->panel + row % g->rows[0]) * size;
  int64_t args[TS_GEMM_ARGS] = {[TS_GEMM_K] = t->kc,
                                [TS_GEMM_LHS] = (int64_t)(intptr_t)lhs,
                                [TS_GEMM_OUT_STRIDE] = t->out_stride,
                                [TS_GEMM_CHAIN] = p->run->chain};
  args[ts_gemm_goes_on(p->run) ? TS_GEMM_CONTINUE : TS_GEMM_ADDS] = t->k > 0 || p->run->adds;
  for (int64_t col = first; col < end; col += p->tile_cols) {
    int64_t cols = gemm_min(p->tile_cols, end - col);
    int narrow = cols <= g->lanes, variant = height * TS_GEMM_WIDTHS + narrow;
    int64_t width = narrow ? g->lanes : p->tile_cols;
    args[TS_GEMM_RHS] = (int64_t)(intptr_t)find_panel(t, col, cols, &args[TS_GEMM_RHS_STRIDE]);
    args[TS_GEMM_OUT] = (int64_t)(intptr_t)(t->out + row * t->out_stride + col * size);
    args[TS_GEMM_COLS] = cols;
    if (rows == g->rows[height] && (g->masked || cols == width)) {
      kernel(args, variant, variant + 1, NULL);
    } else {
      run_edge_tile(kernel, args, variant, rows, cols * size, width * size);
    }
  }
}

/* Finishes a part of the task, whose sums are complete: rounds it, and runs the epilogue on it. */
static void finish(const task *t, int64_t row, int64_t rows, int64_t first, int64_t end, int worker) {
  const plan *p = t->p;
  const gemm_run *run = p->run;
  int64_t batch = p->first_batch + t->batch, col = p->first_col + t->col;
  for (int64_t r = row; r < row + rows && !run->native && !rounds_tiles(t); r++) {
    const char *from = t->partial + r * t->out_stride + first * p->g->element_size;
    ts_gemm_narrow(run->gemm->types.out, from, end - first, result_at(t, r, first));
  }
  if (!run->epilogue || p->shows_rows) return;
  if (run->epilogue->whole_rows && end < t->cols) return;
  if (run->epilogue->whole_rows) first = 0;
  gemm_show(run, (ts_epilogue_part){batch, t->row + row, rows, col + first, end - first}, worker);
}

/* Computes one group of columns for one block of k. */
static void run_group(const task *t, int64_t first, int64_t end, int worker) {
  const plan *p = t->p;
  bool last = t->k + t->kc == p->shape.k && (p->run->epilogue || !p->run->native);
  int64_t most = TS_GEMM_FINISH_BYTES / ((end - first) * p->run->size), done = 0;
  for (int64_t row = 0; row < t->rows;) {
    int height = pick_height(p->g, t->rows - row);
    int64_t rows = gemm_min(p->g->rows[height], t->rows - row);
    if (p->run->gemm->own)
      run_own_row(t, row, rows, first, end);
    else
      run_row(t, row, height, rows, first, end);
    row += rows;
    if (!last || (row - done < most && row < t->rows)) continue;
    finish(t, done, row - done, first, end, worker);
    done = row;
  }
}

/* Computes one block of k of a task; false when cancelled. */
static bool run_block(task *t, int worker) {
  const plan *p = t->p;
  int64_t group = p->group_panels * p->tile_cols;
  pack_block(t);
  for (int64_t first = 0; first < t->cols; first += group) {
    int64_t end = gemm_min(t->cols, first + group);
    if (gemm_cancelled(p->run)) return false;
    pack_group(t, first, end);
    run_group(t, first, end, worker);
  }
  return true;
}

/* Sets the task's output: its part of `out`, or memory for partial results. */
static void place_out(task *t) {
  const plan *p = t->p;
  const ts_gemm_shape *s = &p->shape;
  int size = p->run->size;
  int64_t at = (p->first_batch + t->batch) * s->out_batch + t->row * s->out_row + p->first_col + t->col;
  bool native = p->run->native;
  t->out = native ? p->run->out + at * size : t->partial;
  t->out_stride = native ? s->out_row * size : p->task_panels * p->tile_cols * p->g->element_size;
}

static void product_task(void *arg, int64_t index, int worker) {
  const plan *p = arg;
  task t = {.p = p, .lhs_space = p->workers + worker * p->worker_bytes};
  t.rhs_space = t.lhs_space + p->lhs_bytes;
  t.partial = t.rhs_space + p->rhs_bytes;
  int64_t row_task = index % p->row_tasks, col_task = index / p->row_tasks % p->col_tasks;
  t.batch = index / p->row_tasks / p->col_tasks;
  t.row = row_task * p->row_panels / p->row_tasks * p->g->rows[0];
  t.rows = gemm_min((row_task + 1) * p->row_panels / p->row_tasks * p->g->rows[0], p->shape.m) - t.row;
  t.col = col_task * p->col_panels / p->col_tasks * p->tile_cols;
  t.cols = gemm_min((col_task + 1) * p->col_panels / p->col_tasks * p->tile_cols, p->shape.n) - t.col;
  if (p->run->left) t.lhs_space = (char *)(uintptr_t)p->run->left + t.row / p->g->rows[0] * p->lhs_panel_bytes;
  place_out(&t);
  for (t.k = p->phase; t.k < phase_end(p); t.k += p->kc) {
    t.kc = gemm_min(p->kc, p->shape.k - t.k);
    if (!run_block(&t, worker)) return;
  }
}

/* ---- runs ---- */

static ts_status run_pass(plan *p) {
  const gemm_run *run = p->run;
  _Atomic bool has_tiny = run->has_tiny;
  int64_t tasks = p->shape.batch * p->row_tasks * p->col_tasks, space;
  p->has_tiny = &has_tiny;
  if (tasks == 1) p->parallel = &ts_parallel_serial;
  if (!ts_mul_i64(p->worker_bytes, p->parallel->width, &space) || !ts_add_i64(space, p->shared_bytes, &space))
    return ts_error(TS_RESOURCE_EXHAUSTED, "matrix product needs too much packing space");
  void *memory;
  TS_TRY(ts_pool_alloc(run->pool, space, &memory));
  p->shared = memory;
  p->workers = p->shared + p->shared_bytes;
  if (run->packed) p->shared = (char *)(uintptr_t)run->packed;
  int64_t groups = gemm_ceil_div(p->col_panels, PACK_PANELS);
  for (p->phase = 0; p->phase < p->shape.k; p->phase += p->phase_k) {
    if (p->shared_bytes > 0) ts_parallel_run(p->parallel, p->rhs_batches * phase_blocks(p) * groups, pack_task, p);
    ts_parallel_run(p->parallel, tasks, product_task, p);
  }
  ts_pool_free(run->pool, memory, space);
  return ts_check_cancelled(run->cancel, "a matrix product");
}

typedef struct shown_rows {
  const gemm_run *run;
  int64_t first_batch, rows, chunks; /* rows of a task, tasks of a batch */
} shown_rows;

static void show_task(void *arg, int64_t index, int worker) {
  const shown_rows *s = arg;
  int64_t row = index % s->chunks * s->rows;
  if (gemm_cancelled(s->run)) return;
  gemm_show(s->run,
            (ts_epilogue_part){s->first_batch + index / s->chunks, row, gemm_min(s->rows, s->run->shape.m - row), 0,
                               s->run->shape.n},
            worker);
}

void ts_gemm_show_rows(const gemm_run *run, int64_t first_batch, int64_t batches, const ts_parallel *parallel) {
  shown_rows s = {.run = run, .first_batch = first_batch};
  s.rows = gemm_max(1, TS_GEMM_FINISH_BYTES / (run->shape.n * run->size));
  s.chunks = gemm_ceil_div(run->shape.m, s.rows);
  ts_parallel_run(parallel, batches * s.chunks, show_task, &s);
}

/* Sums of integers wrap, in any order. */
static int64_t chain_of(const ts_gemm *gemm, const ts_gemm_call *call) {
  if (call->one_chain || gemm->compute >= TS_GEMM_I32) return TS_GEMM_ONE_CHAIN;
  return gemm->own == GEMM_AMX_BF16 ? TS_CONTRACT_TILE_CHAIN : TS_CONTRACT_CHAIN;
}

/* Before the packed rhs of a product by AMX: whether it has tiny elements. */
#define WEIGHTS_HEADER 64

static int64_t header_bytes(const ts_gemm *gemm) { return gemm->own == GEMM_AMX_BF16 ? WEIGHTS_HEADER : 0; }

gemm_run ts_gemm_run_of(const ts_gemm *gemm, const ts_gemm_shape *shape, const ts_gemm_call *call) {
  const char *packed = call->packed;
  return (gemm_run){.gemm = gemm,
                    .shape = *shape,
                    .lhs = call->lhs,
                    .rhs = call->rhs,
                    .rows = call->rows,
                    .packed = packed ? packed + header_bytes(gemm) : NULL,
                    .has_tiny = packed && header_bytes(gemm) > 0 && *packed,
                    .left = call->left,
                    .out = call->out,
                    .scale = call->scale,
                    .quantized = call->quantized,
                    .native = gemm->native,
                    .size = gemm->size,
                    .chain = chain_of(gemm, call),
                    .adds = call->adds,
                    .epilogue = call->epilogue,
                    .parallel = call->parallel,
                    .pool = call->pool,
                    .cancel = call->cancel};
}

/* The plan of batches from b on, and columns from j on. */
static ts_status start_plan(plan *p, const gemm_run *run, int64_t b, int64_t batches, int64_t j, int64_t cols) {
  const ts_gemm_shape *s = &run->shape;
  const ts_gemm *gemm = run->gemm;
  *p = (plan){.run = run, .shape = *s, .depth = gemm->depth, .k = s->k, .first_batch = b, .first_col = j};
  p->shape.k = gemm_ceil_div(s->k, p->depth);
  p->shape.lhs_col *= p->depth;
  p->shape.rhs_row *= p->depth;
  p->shape.batch = batches;
  p->shape.n = gemm_min(cols, s->n - j);
  p->lhs = run->lhs + b * s->lhs_batch * gemm->lhs_size;
  p->rhs = run->rhs + (b * s->rhs_batch + j * s->rhs_col) * gemm->rhs_size;
  return plan_make(p);
}

/* Computes batches [b, b + batches), in several passes over the columns if their packed rhs would be too large. */
static ts_status run_batches(const gemm_run *run, int64_t b, int64_t batches, int64_t cols) {
  plan p = {0};
  for (int64_t j = 0; j < run->shape.n; j += cols) {
    TS_TRY(start_plan(&p, run, b, batches, j, cols));
    TS_TRY(run_pass(&p));
  }
  if (p.shows_rows) ts_gemm_show_rows(run, b, batches, p.parallel);
  return ts_check_cancelled(run->cancel, "a matrix product");
}

/* The batches and columns of one pass. */
static void limit_pass(const ts_gemm *gemm, const ts_gemm_shape *s, int64_t *out_batch, int64_t *out_cols) {
  int64_t unit = (int64_t)gemm->geometry.vectors * gemm->geometry.lanes;
  int64_t row = gemm_max(1, SHARED_MAX_BYTES / gemm->geometry.element_size / s->k); /* columns that fit */
  *out_cols = gemm_min(s->n, gemm_max(unit, row / unit * unit));
  *out_batch = s->rhs_batch == 0 ? s->batch : gemm_min(s->batch, gemm_max(1, row / gemm_round_up(s->n, unit)));
}

/* Splits a product whose packed rhs would be too large, first by batch, then by columns. */
ts_status ts_gemm_run_passes(const gemm_run *run) {
  const ts_gemm_shape *s = &run->shape;
  int64_t batch, cols;
  limit_pass(run->gemm, s, &batch, &cols);
  for (int64_t b = 0; b < s->batch; b += batch) TS_TRY(run_batches(run, b, gemm_min(batch, s->batch - b), cols));
  return TS_SUCCESS;
}

/* ---- weights ---- */

/* The plan of packing a block of k: it is the same for any number of rows. */
static ts_status plan_weights(plan *p, const gemm_run *run) {
  gemm_run any = *run;
  any.shape.m = TS_GEMM_WEIGHT_ROWS;
  TS_TRY(start_plan(p, &any, 0, run->shape.batch, 0, run->shape.n));
  p->run = run;
  p->phase_k = p->shape.k;
  p->mode = RHS_SHARED;
  return TS_SUCCESS;
}

/* Steps of k that are packed together. */
static int64_t block_steps(const gemm_run *run) {
  return ts_gemm_goes_on(run) ? run->shape.k : gemm_min(run->shape.k, TS_CONTRACT_BLOCK);
}

static int64_t packed_bytes(const plan *p, int64_t k) {
  return p->rhs_batches * k * p->col_panels * p->tile_cols * p->g->element_size;
}

/* True for types whose packed elements take about as much memory as the elements. */
static bool keeps_size(const ts_gemm *gemm) {
  if (gemm->own) return gemm->depth * gemm->rhs_size == gemm->geometry.element_size;
  return gemm->native && gemm->depth == 1 && gemm->types.rhs == gemm->types.out;
}

static bool gains(const ts_gemm *gemm, const ts_gemm_shape *s) {
  int64_t batch, cols;
  if (s->m > TS_GEMM_WEIGHT_ROWS || s->k <= 0 || gemm_is_empty(s) || s->n * s->k < TS_GEMM_WEIGHT_ELEMENTS)
    return false;
  if (gemm->complex || gemm->scaled || !keeps_size(gemm) || gemm->request.kernel != TS_GEMM_TILE) return false;
  limit_pass(gemm, s, &batch, &cols);
  return batch == s->batch && cols == s->n;
}

bool ts_gemm_packs_weights(const ts_gemm *gemm, const ts_gemm_shape *shape, ts_prepared_key *out, int64_t *out_bytes) {
  gemm_run run = ts_gemm_run_of(gemm, shape, &(ts_gemm_call){.parallel = &ts_parallel_serial});
  plan p;
  run.shape.k = block_steps(&run);
  if (!gains(gemm, shape) || !ts_status_consume_ok(plan_weights(&p, &run)) || is_direct(&p)) return false;
  *out = (ts_prepared_key){{p.g->compute | (int64_t)gemm->types.rhs << 8 | (int64_t)gemm->depth << 16, p.rhs_batches,
                            p.shape.n, shape->k, p.shape.rhs_batch, p.shape.rhs_row, p.shape.rhs_col, p.kc}};
  *out_bytes = header_bytes(gemm) + packed_bytes(&p, gemm_ceil_div(shape->k, gemm->depth));
  return true;
}

ts_status ts_gemm_pack_weights(const ts_gemm *gemm, const ts_gemm_shape *shape, const ts_gemm_call *call, void *out) {
  gemm_run run = ts_gemm_run_of(gemm, shape, call);
  plan p;
  char *to = (char *)out + header_bytes(gemm);
  const int64_t steps = block_steps(&run);
  _Atomic bool has_tiny = false;
  for (int64_t k = 0; k < shape->k; k += steps, run.rhs += steps * shape->rhs_row * gemm->rhs_size) {
    run.shape.k = gemm_min(steps, shape->k - k);
    TS_TRY(plan_weights(&p, &run));
    p.shared = to;
    p.has_tiny = &has_tiny;
    int64_t groups = gemm_ceil_div(p.col_panels, PACK_PANELS);
    ts_parallel_run(run.parallel, p.rhs_batches * phase_blocks(&p) * groups, pack_task, &p);
    to += packed_bytes(&p, p.shape.k);
  }
  if (header_bytes(gemm) > 0) *(char *)out = has_tiny;
  return ts_check_cancelled(call->cancel, "a matrix product");
}

/* ---- a shared left side ---- */

int64_t ts_gemm_left_elements(const ts_gemm *gemm, int64_t m, int64_t k) {
  return gemm_ceil_div(m, gemm->geometry.rows[0]) * gemm->geometry.panel * k;
}

/* One block of k: plan_k has no smaller ones. */
void ts_gemm_pack_left(const ts_gemm *gemm, const ts_gemm_shape *s, const void *lhs, void *out) {
  const ts_gemm_geometry *g = &gemm->geometry;
  const gemm_pack pack = {.dtype = gemm->types.lhs,
                          .compute = g->compute,
                          .unit_stride = s->lhs_row,
                          .k_stride = s->lhs_col,
                          .step = g->rows[0],
                          .width = g->panel,
                          .numbers = gemm->complex ? GEMM_LEFT : GEMM_REAL,
                          .scale_type = TS_DTYPE_NONE};
  ts_gemm_pack(&pack, lhs, s->m, s->k, out, s->k * g->panel * g->element_size);
}
