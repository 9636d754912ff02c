/* Products by tiles: the operands are packed into panels, and tasks compute tiles of the result from them. */
#include "kernel/gemm/bf16/gemm_bf16.h"
#include "kernel/gemm/gemm_plan.h"
#include "kernel/gemm/gemm_quads.h"
#include "kernel/gemm/quantized.h"

#include <string.h>

#define PACK_PANELS 8 /* panels of rhs in one task of shared packing */
/* Limit for the packed rhs of one pass when k is done in one phase; larger products take several passes. */
#define SHARED_MAX_BYTES (INT64_C(128) << 20)

/* ---- shared packing of rhs ---- */

/* Bytes of a packed panel of rhs. */
static int64_t panel_bytes(const gemm_plan *p, int64_t kc) { return kc * p->tile_cols * p->g->element_size; }

static char *shared_panel(const gemm_plan *p, int64_t batch, int64_t k, int64_t panel, int64_t kc) {
  int64_t before = (batch * p->phase_k + k - p->phase) * p->col_panels + panel * kc;
  return p->shared + before * p->tile_cols * p->g->element_size;
}

static int64_t phase_end(const gemm_plan *p) { return gemm_min(p->phase + p->phase_k, p->shape.k); }
static int64_t phase_blocks(const gemm_plan *p) { return gemm_ceil_div(phase_end(p) - p->phase, p->kc); }

/* How operand 0 or 1 is packed, from a row or column of a batch on. */
static gemm_pack scaled_from(const gemm_plan *p, int operand, int64_t batch, int64_t unit) {
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

/* Packs columns and `k` elements of rhs. Returns whether any is tiny (gemm_bf16.h). */
static bool pack_rhs(const gemm_plan *p, const gemm_pack *pack, const char *from, int64_t units, int64_t k,
                     char *panels) {
  if (ts_gemm_has_bf16_pairs(p->run->gemm)) return ts_gemm_bf16_pack_right(pack, from, units, k, panels);
  if (ts_gemm_has_quads(p->run->gemm))
    ts_gemm_quads_pack_right(pack, from, units, k, panels);
  else
    ts_gemm_pack(pack, from, units, k, panels, panel_bytes(p, gemm_ceil_div(k, p->depth)));
  return false;
}

/* Columns [col, col + cols) of rhs, of `steps` steps from step k on. */
static bool pack_quantized(const gemm_plan *p, int64_t col, int64_t cols, int64_t k, int64_t steps, char *panels) {
  bool tiny = false;
  const ts_quantized *weight = p->run->quantized;
  const ts_quantized_code *code = ts_quantized_host();
  const int64_t width = p->tile_cols, elements = gemm_elements_of(p, k, steps);
  for (int64_t c = 0; c < cols; c += width, panels += panel_bytes(p, steps)) {
    const int64_t at = p->first_col + col + c;
    const ts_quantized_part part = {at / TS_QUANTIZED_COLS, at % TS_QUANTIZED_COLS, width,
                                    p->run->first_k + k * p->depth, elements};
    if (!p->run->gemm->own)
      code->unpack(weight, part, (float *)(void *)panels, width);
    else
      tiny |= code->pairs(weight, part, (uint32_t *)(void *)panels, width);
    if (p->run->gemm->own == GEMM_CHAIN_BF16) ts_gemm_bf16_swap(panels, panel_bytes(p, steps));
  }
  return tiny;
}

static void note_tiny(const gemm_plan *p, bool tiny) {
  if (tiny) atomic_store_explicit(p->has_tiny, true, memory_order_relaxed);
}

static void pack_task(void *arg, int64_t task, int worker) {
  (void)worker;
  const gemm_plan *p = arg;
  const ts_gemm_shape *s = &p->shape;
  if (gemm_cancelled(p->run)) return;
  int64_t groups = gemm_ceil_div(p->col_panels, PACK_PANELS);
  int64_t panel = task % groups * PACK_PANELS, blocks = phase_blocks(p);
  int64_t batch = task / groups / blocks, k = p->phase + task / groups % blocks * p->kc;
  int64_t kc = gemm_min(p->kc, s->k - k), col = panel * p->tile_cols;
  int64_t cols = gemm_min(PACK_PANELS * p->tile_cols, s->n - col);
  if (p->run->quantized) {
    note_tiny(p, pack_quantized(p, col, cols, k, kc, shared_panel(p, batch, k, panel, kc)));
    return;
  }
  const char *from = p->rhs + (batch * s->rhs_batch + k * s->rhs_row + col * s->rhs_col) * p->run->gemm->rhs_size;
  const gemm_pack pack = scaled_from(p, 1, batch, col);
  note_tiny(p, pack_rhs(p, &pack, from, cols, gemm_elements_of(p, k, kc), shared_panel(p, batch, k, panel, kc)));
}

/* ---- tiles ---- */

/* The tile height to use first when `rows` are left: less waste first, then fewer tiles. */
static int pick_height(const ts_gemm_geometry *g, int64_t rows) {
  if (rows >= g->rows[0] || rows > g->rows[1] + g->rows[2]) return 0;
  return rows > g->rows[2] ? 1 : 2;
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
  const gemm_plan *p;
  int64_t batch, row, rows, col, cols; /* of the pass */
  int64_t k, kc;                       /* the block of k that is being added */
  int64_t group;                       /* GEMM_RHS_PRIVATE: the first packed column of rhs */
  int64_t chunk;                       /* GEMM_RHS_PRIVATE: the first packed k of rhs */
  int64_t first_row;                   /* of the partial results */
  int64_t part;                        /* of the columns */
  bool lhs_tiny, rhs_tiny;             /* the rows, and the task's columns, have tiny elements up to this block of k */
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
  const gemm_plan *p = t->p;
  const ts_gemm_rows *lhs = p->run->rows;
  int size = p->g->element_size;
  _Alignas(64) char state[TS_GEMM_ROW_STATE];
  const char *rows[TS_GEMM_MAX_ROWS + 3];
  const int64_t batch = p->first_batch + t->batch, first_k = p->run->first_k + batch * p->run->batch_k + t->k;
  for (int64_t row = 0; row < t->rows && !gemm_cancelled(p->run); row += p->g->rows[0]) {
    int64_t units = gemm_min(p->g->rows[0], t->rows - row);
    char *panel = t->lhs_space + row / p->g->rows[0] * t->kc * p->g->panel * size;
    lhs->start(lhs->context, p->run->batch_k ? 0 : batch, t->row + row, units, state);
    for (int64_t k = 0; k < t->kc;) {
      int64_t run = gemm_min(lhs->find(lhs->context, state, first_k + k, rows), t->kc - k);
      ts_gemm_pack_rows(&p->pack_lhs, rows, units, run, panel + k * p->g->panel * size);
      k += run;
    }
  }
}

static void pack_lhs(task *t, int64_t row, int64_t rows) {
  const gemm_plan *p = t->p;
  const ts_gemm_shape *s = &p->shape;
  const int64_t k = gemm_elements_of(p, t->k, t->kc);
  const char *from =
      p->lhs + (t->batch * s->lhs_batch + (t->row + row) * s->lhs_row + t->k * s->lhs_col) * p->run->gemm->lhs_size;
  const gemm_pack pack = scaled_from(p, 0, t->batch, t->row + row);
  const gemm_amx_product own = p->run->gemm->own;
  if (ts_gemm_has_quads(p->run->gemm)) {
    ts_gemm_quads_pack_left(&pack, own, from, rows, k, t->lhs_space);
    return;
  }
  if (own) {
    t->lhs_tiny |= ts_gemm_bf16_pack_left(&pack, from, rows, k, t->lhs_space);
    if (p->phase_k < p->shape.k) note_tiny(p, t->lhs_tiny); /* another task adds to the same sums */
    return;
  }
  ts_gemm_pack(&pack, from, rows, k, t->lhs_space, t->kc * p->g->panel * p->g->element_size);
}

/* Packs the operands of the whole block of k, unless they are packed already. */
static void pack_block(task *t) {
  const gemm_plan *p = t->p;
  int64_t k = gemm_elements_of(p, t->k, t->kc);
  if (p->run->rows)
    pack_rows(t);
  else if (!p->run->left)
    pack_lhs(t, 0, t->rows);
  int64_t rest = t->cols % p->tile_cols;
  if (p->mode == GEMM_RHS_DIRECT && rest) /* it has the product's type: not scaled */
    ts_gemm_pack(&p->pack_rhs, rhs_address(t, t->cols - rest), rest, k, t->rhs_space, panel_bytes(p, t->kc));
}

/* GEMM_RHS_PRIVATE: the panel that starts at the task's column `col`. */
static char *private_panel(const task *t, int64_t col) {
  const gemm_plan *p = t->p;
  const int64_t before = panel_bytes(p, t->k - t->chunk) * gemm_ceil_div(t->cols, p->tile_cols);
  return t->rhs_space + before + (col - t->group) / p->tile_cols * panel_bytes(p, t->kc);
}

/* Packs the rhs of one group of columns. */
static void pack_group(task *t, int64_t first, int64_t end) {
  const gemm_plan *p = t->p;
  t->group = first;
  if (p->mode != GEMM_RHS_PRIVATE) return;
  char *to = private_panel(t, first);
  if (p->run->quantized) {
    t->rhs_tiny |= pack_quantized(p, t->col + first, end - first, t->k, t->kc, to);
    return;
  }
  const gemm_pack pack = scaled_from(p, 1, t->batch, t->col + first);
  t->rhs_tiny |= pack_rhs(p, &pack, rhs_address(t, first), end - first, gemm_elements_of(p, t->k, t->kc), to);
}

/* The address of the panel that starts at the task's column `col`; also the bytes from k to k + 1. */
static const char *find_panel(const task *t, int64_t col, int64_t cols, int64_t *out_stride) {
  const gemm_plan *p = t->p;
  *out_stride = p->tile_cols * p->g->element_size;
  if (p->mode == GEMM_RHS_SHARED)
    return shared_panel(p, p->shape.rhs_batch ? t->batch : 0, t->k, (t->col + col) / p->tile_cols, t->kc);
  if (p->mode == GEMM_RHS_PRIVATE) return private_panel(t, col);
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
  const gemm_plan *p = t->p;
  const int64_t batch = p->first_batch + t->batch, first = p->first_col + t->col + col;
  return p->run->out + (batch * p->shape.out_batch + (t->row + row) * p->shape.out_row + first) * p->run->size;
}

/* The rounding of a tile's sums. */
static gemm_amx_rounding rounding_of(const task *t, int64_t row, int64_t col, const gemm_amx_tile *tile) {
  return (gemm_amx_rounding){.sums = tile->to,
                             .to = result_at(t, row, col),
                             .stride = t->p->shape.out_row * t->p->run->size,
                             .rows = tile->rows,
                             .cols = tile->cols};
}

/* Rounding writes a tile's rows after the tile is computed: till then they can be in L1. */
static void fetch_results(const task *t, int64_t row, int64_t rows, int64_t col) {
  const int64_t stride = t->p->shape.out_row * t->p->run->size;
  const char *at = result_at(t, row, col);
  for (int64_t r = 0; r < rows; r++) __builtin_prefetch(at + r * stride, 1);
}

/* What is packed after a row of tiles: the next block of k of its rows, or the first one of the next rows. */
static gemm_amx_ahead find_ahead(const task *t, int64_t row, int64_t rows) {
  const gemm_plan *p = t->p;
  const ts_gemm_shape *s = &p->shape;
  const int64_t size = p->run->gemm->lhs_size, tiles = gemm_ceil_div(t->cols, p->tile_cols);
  const bool more = t->k + t->kc < gemm_min(phase_end(p), t->chunk + p->chunk_k);
  const int64_t next = more ? row : row + rows, k = more ? t->k + t->kc : t->chunk;
  if (!p->by_rows || p->pack_lhs.k_stride != 1) return (gemm_amx_ahead){0};
  gemm_amx_ahead out = {.at = p->lhs + (t->batch * s->lhs_batch + (t->row + next) * s->lhs_row + k * s->lhs_col) * size,
                        .stride = s->lhs_row * size,
                        .rows = gemm_min(p->g->rows[0], t->rows - next),
                        .bytes = gemm_min(p->kc, p->shape.k - k) * p->depth * size};
  out.pace =
      gemm_ceil_div(gemm_ceil_div(out.bytes, 64) * out.rows, tiles * gemm_max(1, t->kc / TS_CONTRACT_TILE_CHAIN));
  return out;
}

/* run_row by gemm_amx.c, gemm_bf16_chain.c or gemm_quads.c. */
static void run_own_row(const task *t, int64_t row, int64_t rows, int64_t first, int64_t end) {
  const gemm_plan *p = t->p;
  _Alignas(64) char sums[2][32 * 32 * 4]; /* of this tile and of the tile before */
  const bool rounds = rounds_tiles(t);
  gemm_amx_tile tile = {.rows = rows,
                        .k = t->kc,
                        .lhs = t->lhs_space + (p->by_rows ? 0 : row * t->kc * p->g->element_size),
                        .product = p->run->gemm->own,
                        .out_stride = t->out_stride,
                        .to_stride = rounds ? p->tile_cols * p->g->element_size : t->out_stride,
                        .adds = t->k > 0,
                        .ahead = find_ahead(t, row, rows),
                        .has_tiny =
                            t->lhs_tiny || t->rhs_tiny || atomic_load_explicit(p->has_tiny, memory_order_relaxed)};
  for (int64_t col = first; col < end; col += p->tile_cols) {
    int64_t stride;
    tile.cols = gemm_min(p->tile_cols, end - col);
    tile.rhs = find_panel(t, col, tile.cols, &stride);
    char *out = t->out + (row - t->first_row) * t->out_stride + col * p->g->element_size;
    tile.out = out;
    tile.to = rounds ? sums[col / p->tile_cols % 2] : out;
    if (rounds) fetch_results(t, row, rows, col);
    ts_gemm_own_run(&tile);
    if (!rounds) continue;
    ts_gemm_amx_round(&tile.rounding);
    tile.rounding = rounding_of(t, row, col, &tile);
  }
  if (rounds) ts_gemm_amx_round(&tile.rounding);
  ts_gemm_own_end();
}

/* The packed rhs of the next group, which the tiles of a group prefetch to L2. */
typedef struct later {
  int64_t at;       /* address; 0: nothing */
  int64_t row_part; /* bytes for each row of a tile */
} later;

static later find_later(const task *t, int64_t first, int64_t end) {
  const gemm_plan *p = t->p;
  const bool more = end < t->cols;
  const int64_t k = more ? t->k : t->k + t->kc, col = more ? end : 0;
  if (!p->fetches_panels || t->rows <= p->g->rows[0] || k >= phase_end(p)) return (later){0};
  const int64_t kc = gemm_min(p->kc, p->shape.k - k), group = p->group_panels * p->tile_cols;
  const int64_t panels = gemm_ceil_div(gemm_min(group, t->cols - col), p->tile_cols);
  const int64_t tile_rows = t->rows * gemm_ceil_div(end - first, p->tile_cols);
  const char *at = shared_panel(p, p->shape.rhs_batch ? t->batch : 0, k, (t->col + col) / p->tile_cols, kc);
  return (later){(int64_t)(intptr_t)at, gemm_ceil_div(panels * panel_bytes(p, kc), tile_rows)};
}

/* The bytes from a tile to the next one of the task: to the right, below, or of the next group. */
static int64_t out_ahead(const task *t, int64_t row, int64_t rows, int64_t first, int64_t end, int64_t col) {
  const int64_t width = t->p->tile_cols, size = t->p->g->element_size;
  if (col + width < end) return width * size;
  if (row + rows < t->rows) return rows * t->out_stride + (first - col) * size;
  return end < t->cols ? (end - col) * size - row * t->out_stride : 0;
}

/* Computes columns [first, end) of the rows of one tile height: their lhs stays in L1. Advances `next`. */
static void run_row(const task *t, int64_t row, int height, int64_t first, int64_t end, later *next) {
  const gemm_plan *p = t->p;
  const ts_gemm_geometry *g = p->g;
  const int64_t rows = gemm_min(g->rows[height], t->rows - row);
  ts_kernel_fn kernel = ts_kernel_entry(p->run->gemm->kernels[TS_GEMM_TILE]);
  int size = g->element_size;
  const char *lhs = t->lhs_space + (row / g->rows[0] * t->kc * g->panel + row % g->rows[0]) * size;
  int64_t args[TS_GEMM_ARGS] = {[TS_GEMM_K] = t->kc,
                                [TS_GEMM_LHS] = (int64_t)(intptr_t)lhs,
                                [TS_GEMM_OUT_STRIDE] = t->out_stride,
                                [TS_GEMM_CHAIN] = p->run->chain};
  args[TS_GEMM_LATER_STEP] = gemm_min(gemm_ceil_div(next->row_part * rows, t->kc), 64);
  args[ts_gemm_goes_on(p->run) ? TS_GEMM_CONTINUE : TS_GEMM_ADDS] = t->k > 0 || p->run->adds;
  for (int64_t col = first; col < end; col += p->tile_cols) {
    int64_t cols = gemm_min(p->tile_cols, end - col);
    int narrow = cols <= g->lanes, variant = height * TS_GEMM_WIDTHS + narrow;
    int64_t width = narrow ? g->lanes : p->tile_cols;
    args[TS_GEMM_RHS] = (int64_t)(intptr_t)find_panel(t, col, cols, &args[TS_GEMM_RHS_STRIDE]);
    args[TS_GEMM_OUT] = (int64_t)(intptr_t)(t->out + row * t->out_stride + col * size);
    args[TS_GEMM_OUT_AHEAD] = out_ahead(t, row, rows, first, end, col);
    args[TS_GEMM_COLS] = cols;
    args[TS_GEMM_LATER] = next->at ? next->at : args[TS_GEMM_RHS];
    next->at += next->row_part * rows;
    if (rows == g->rows[height] && (g->masked || cols == width)) {
      kernel(args, variant, variant + 1, NULL);
    } else {
      run_edge_tile(kernel, args, variant, rows, cols * size, width * size);
    }
  }
}

/* Finishes a part of the task, whose sums are complete: rounds it, and runs the epilogue on it. */
static void finish(const task *t, int64_t row, int64_t rows, int64_t first, int64_t end, int worker) {
  const gemm_plan *p = t->p;
  const gemm_run *run = p->run;
  int64_t batch = p->first_batch + t->batch, col = p->first_col + t->col;
  for (int64_t r = row; r < row + rows && !run->native && !rounds_tiles(t); r++) {
    const char *from = t->partial + (r - t->first_row) * t->out_stride + first * p->g->element_size;
    ts_gemm_narrow(run->gemm->types.out, from, end - first, result_at(t, r, first));
  }
  if (!run->epilogue || p->shows_rows) return;
  if (run->epilogue->whole_rows && end < t->cols) return;
  if (run->epilogue->whole_rows) first = 0;
  gemm_show(run, (ts_epilogue_part){batch, t->row + row, rows, col + first, end - first}, worker);
}

/* Computes one group of columns for one block of k. */
static void run_group(const task *t, int64_t first, int64_t end, int worker) {
  const gemm_plan *p = t->p;
  bool last = t->k + t->kc == p->shape.k && (p->run->epilogue || !p->run->native);
  int64_t most = TS_GEMM_FINISH_BYTES / ((end - first) * p->run->size), done = 0;
  later next = find_later(t, first, end);
  for (int64_t row = 0; row < t->rows;) {
    int height = pick_height(p->g, t->rows - row);
    int64_t rows = gemm_min(p->g->rows[height], t->rows - row);
    if (p->run->gemm->own)
      run_own_row(t, row, rows, first, end);
    else
      run_row(t, row, height, first, end, &next);
    row += rows;
    if (!last || (row - done < most && row < t->rows)) continue;
    finish(t, done, row - done, first, end, worker);
    done = row;
  }
}

/* Computes one block of k of a task; false when cancelled. */
static bool run_block(task *t, int worker) {
  const gemm_plan *p = t->p;
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

/* Packs the task's columns of rhs for a chunk of k. */
static void pack_chunk(task *t, int64_t end) {
  const gemm_plan *p = t->p;
  for (; t->k < end; t->k += t->kc) {
    t->kc = gemm_min(p->kc, end - t->k);
    pack_group(t, 0, t->cols);
  }
}

static gemm_kept *kept_of(const gemm_plan *p, int worker) {
  char *end = p->workers + (worker + 1) * p->worker_bytes;
  return (gemm_kept *)(void *)(end - TS_GEMM_WORKER_GAP);
}

/* Packs the task's columns of rhs, unless its worker has them. */
static void pack_kept(task *t, int64_t end, int worker) {
  gemm_kept *kept = kept_of(t->p, worker);
  if (kept->part != t->part) {
    pack_chunk(t, end);
    *kept = (gemm_kept){t->part, t->rhs_tiny};
  }
  t->rhs_tiny = kept->tiny;
}

/* Computes a task of own tiles, for one chunk of k after another: the columns of rhs stay in L2, and the panels of lhs
 * pass through L1. Sums are those of a few rows, or of the task if there are several chunks. */
static void run_rows(task *t, int worker) {
  const gemm_plan *p = t->p;
  const int64_t end = phase_end(p);
  const bool whole = gemm_is_one_chunk(p);
  for (int64_t chunk = p->phase; chunk < end; chunk += p->chunk_k) {
    const int64_t chunk_end = gemm_min(end, chunk + p->chunk_k);
    t->k = t->chunk = chunk;
    if (p->keeps)
      pack_kept(t, chunk_end, worker);
    else if (p->mode == GEMM_RHS_PRIVATE)
      pack_chunk(t, chunk_end);
    for (int64_t row = 0; row < t->rows; row += p->g->rows[0]) {
      const int64_t rows = gemm_min(p->g->rows[0], t->rows - row);
      if (gemm_cancelled(p->run)) return;
      if (whole && !p->run->native) t->first_row = row;
      if (whole) t->lhs_tiny = false; /* else later chunks add to the same sums */
      for (t->k = chunk; t->k < chunk_end; t->k += t->kc) {
        t->kc = gemm_min(p->kc, chunk_end - t->k);
        pack_lhs(t, row, rows);
        run_own_row(t, row, rows, 0, t->cols);
      }
      t->k -= t->kc;
      if (chunk_end == p->shape.k) finish(t, row, rows, 0, t->cols, worker);
    }
  }
}

/* Sets the task's output: its part of `out`, or memory for partial results. */
static void place_out(task *t) {
  const gemm_plan *p = t->p;
  const ts_gemm_shape *s = &p->shape;
  int size = p->run->size;
  int64_t at = (p->first_batch + t->batch) * s->out_batch + t->row * s->out_row + p->first_col + t->col;
  bool native = p->run->native;
  t->out = native ? p->run->out + at * size : t->partial;
  t->out_stride = native ? s->out_row * size : p->partial_row;
}

/* keeps: another task of the columns that the worker has packed, or else of other columns. There is one: each task
 * calls this once. */
static int64_t take_task(const gemm_plan *p, int worker, int64_t *out_part) {
  const gemm_kept *kept = kept_of(p, worker);
  const int64_t tasks = p->tasks / p->col_tasks;
  int64_t part = kept->part < 0 ? worker * p->col_tasks / p->parallel->width : kept->part;
  for (;; part = (part + 1) % p->col_tasks) {
    const int64_t next = atomic_fetch_add_explicit(&p->taken[part], 1, memory_order_relaxed);
    *out_part = part;
    if (next < tasks) return next;
  }
}

/* Sets the task's batch, rows and columns. */
static void place_task(task *t, int64_t index, int worker) {
  const gemm_plan *p = t->p;
  const int64_t groups = p->shape.batch * p->col_tasks;
  int64_t group = gemm_min(index / p->row_tasks, groups - 1), row_task = index - group * p->row_tasks;
  if (p->keeps) row_task = take_task(p, worker, &group);
  const int64_t col_task = group % p->col_tasks;
  int64_t first = row_task * p->row_panels / p->row_tasks, end = (row_task + 1) * p->row_panels / p->row_tasks;
  if (p->keeps || group == groups - 1) {
    first = gemm_cut_first(&p->last, row_task);
    end = gemm_cut_next(&p->last, first);
  }
  t->part = col_task;
  t->batch = group / p->col_tasks;
  t->row = first * p->g->rows[0];
  t->rows = gemm_min(end * p->g->rows[0], p->shape.m) - t->row;
  t->col = col_task * p->col_panels / p->col_tasks * p->tile_cols;
  t->cols = gemm_min((col_task + 1) * p->col_panels / p->col_tasks * p->tile_cols, p->shape.n) - t->col;
}

static void product_task(void *arg, int64_t index, int worker) {
  const gemm_plan *p = arg;
  task t = {.p = p, .lhs_space = p->workers + worker * p->worker_bytes};
  t.rhs_space = t.lhs_space + p->lhs_bytes;
  t.partial = t.rhs_space + p->rhs_bytes;
  place_task(&t, index, worker);
  if (p->run->left) t.lhs_space = (char *)(uintptr_t)p->run->left + t.row / p->g->rows[0] * p->lhs_panel_bytes;
  place_out(&t);
  if (p->by_rows) {
    run_rows(&t, worker);
    return;
  }
  for (t.k = p->phase; t.k < phase_end(p); t.k += p->kc) {
    t.chunk = t.k;
    t.kc = gemm_min(p->kc, p->shape.k - t.k);
    if (!run_block(&t, worker)) return;
  }
}

/* ---- runs ---- */

static ts_status run_pass(gemm_plan *p) {
  const gemm_run *run = p->run;
  _Atomic bool has_tiny = run->has_tiny;
  _Atomic int64_t taken[GEMM_MOST_KEPT];
  int64_t space;
  p->has_tiny = &has_tiny;
  if (p->tasks == 1) p->parallel = &ts_parallel_serial;
  if (!ts_mul_i64(p->worker_bytes, p->parallel->width, &space) || !ts_add_i64(space, p->shared_bytes, &space))
    return ts_error(TS_RESOURCE_EXHAUSTED, "matrix product needs too much packing space");
  void *memory;
  TS_TRY(ts_pool_alloc(run->pool, space, &memory));
  p->shared = memory;
  p->workers = p->shared + p->shared_bytes;
  if (run->packed) p->shared = (char *)(uintptr_t)run->packed;
  p->taken = taken;
  for (int64_t part = 0; p->keeps && part < p->col_tasks; part++) atomic_init(&taken[part], 0);
  for (int worker = 0; p->keeps && worker < p->parallel->width; worker++) kept_of(p, worker)->part = -1;
  int64_t groups = gemm_ceil_div(p->col_panels, PACK_PANELS);
  for (p->phase = 0; p->phase < p->shape.k; p->phase += p->phase_k) {
    if (p->shared_bytes > 0) ts_parallel_run(p->parallel, p->rhs_batches * phase_blocks(p) * groups, pack_task, p);
    ts_parallel_run(p->parallel, p->tasks, product_task, p);
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

/* Before the packed rhs of a product of pairs of bf16: whether it has tiny elements. */
#define WEIGHTS_HEADER 64

static int64_t header_bytes(const ts_gemm *gemm) { return ts_gemm_has_bf16_pairs(gemm) ? WEIGHTS_HEADER : 0; }

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
                    .columns = call->columns,
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
static ts_status start_plan(gemm_plan *p, const gemm_run *run, int64_t b, int64_t batches, int64_t j, int64_t cols) {
  const ts_gemm_shape *s = &run->shape;
  const ts_gemm *gemm = run->gemm;
  *p = (gemm_plan){.run = run, .shape = *s, .depth = gemm->depth, .k = s->k, .first_batch = b, .first_col = j};
  p->shape.k = gemm_ceil_div(s->k, p->depth);
  p->shape.lhs_col *= p->depth;
  p->shape.rhs_row *= p->depth;
  p->shape.batch = batches;
  p->shape.n = gemm_min(cols, s->n - j);
  p->lhs = run->lhs + b * s->lhs_batch * gemm->lhs_size;
  p->rhs = run->rhs + (b * s->rhs_batch + j * s->rhs_col) * gemm->rhs_size;
  return ts_gemm_plan_make(p);
}

/* Computes batches [b, b + batches), in several passes over the columns if their packed rhs would be too large. */
static ts_status run_batches(const gemm_run *run, int64_t b, int64_t batches, int64_t cols) {
  gemm_plan p = {0};
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
static ts_status plan_weights(gemm_plan *p, const gemm_run *run) {
  gemm_run any = *run;
  any.shape.m = TS_GEMM_WEIGHT_ROWS;
  TS_TRY(start_plan(p, &any, 0, run->shape.batch, 0, run->shape.n));
  p->run = run;
  p->phase_k = p->shape.k;
  p->mode = GEMM_RHS_SHARED;
  return TS_SUCCESS;
}

/* Steps of k that are packed together. */
static int64_t block_steps(const gemm_run *run) {
  return ts_gemm_goes_on(run) ? run->shape.k : gemm_min(run->shape.k, TS_CONTRACT_BLOCK);
}

static int64_t packed_bytes(const gemm_plan *p, int64_t k) {
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
  gemm_plan p;
  run.shape.k = block_steps(&run);
  if (!gains(gemm, shape) || !ts_status_consume_ok(plan_weights(&p, &run)) || ts_gemm_plan_is_direct(&p)) return false;
  *out = (ts_prepared_key){{p.g->compute | (int64_t)gemm->types.rhs << 8 | (int64_t)gemm->depth << 16, p.rhs_batches,
                            p.shape.n, shape->k, p.shape.rhs_batch, p.shape.rhs_row, p.shape.rhs_col, p.kc}};
  *out_bytes = header_bytes(gemm) + packed_bytes(&p, gemm_ceil_div(shape->k, gemm->depth));
  return true;
}

ts_status ts_gemm_pack_weights(const ts_gemm *gemm, const ts_gemm_shape *shape, const ts_gemm_call *call, void *out) {
  gemm_run run = ts_gemm_run_of(gemm, shape, call);
  gemm_plan p;
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
