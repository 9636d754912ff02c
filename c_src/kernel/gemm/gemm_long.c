/* Products of many steps of k. Each block of TS_CONTRACT_BLOCK steps is a product of its own; blocks are added in
 * pairs, as the digits of a binary number are carried: the sum of 2^i blocks waits for the next one. Where a result is
 * small, many blocks are the batch of one product, so that all threads have work. */
#include "kernel/gemm/complex/complex_vector.h"
#include "kernel/gemm/gemm_internal.h"
#include "kernel/gemm/gemm_widen.h"
#include "kernel/gemm/scaled_row.h"

#include <string.h>

/* The most bytes of results of blocks that are computed together, and of one such result. */
#define WAVE_BYTES (INT64_C(32) << 20)
#define WAVE_RESULT_BYTES (INT64_C(1) << 20)
/* The same for rows that lie anywhere, which each block packs. */
#define WAVE_ROWS_BYTES (INT64_C(64) << 10)
#define WAVE_BLOCKS 1024
/* Elements of one task that adds. */
#define TASK_ELEMENTS 8192
/* Waves that wait, and the next one: more than the digits of their number. */
#define MAX_PLACES 64

/* Results of the type that is computed. Strides in bytes. */
typedef struct place {
  char *at;
  int64_t batch, row;
} place;

typedef struct long_plan {
  const gemm_run *run;
  bool f64;
  int64_t size; /* of an element */
  int64_t first_batch, batches;
  int64_t blocks, wave;     /* of k; of k that are computed together: a power of two */
  int64_t part;             /* bytes of the results of a block */
  int64_t rows;             /* of results: batches * m */
  int64_t step;             /* rows of a task that adds */
  char *waves;              /* results of the blocks of a wave */
  place places[MAX_PLACES]; /* sums of waves that wait */
  int count;
  const place *to, *from; /* of tasks: from is added to to */
  int64_t summed;         /* of tasks: blocks of the wave that are summed into to */
} long_plan;

/* ---- sums ---- */

static void add_row(const long_plan *p, char *to, const char *from, int64_t count) {
  if (p->f64)
    ts_gemm_widen_host()->add_f64((const double *)(const void *)from, count, (double *)(void *)to);
  else
    ts_gemm_widen_host()->add_f32((const float *)(const void *)from, count, (float *)(void *)to);
}

static char *row_at(const long_plan *p, const place *a, int64_t row) {
  const int64_t m = p->run->shape.m;
  return a->at + row / m * a->batch + row % m * a->row;
}

static int64_t task_end(const long_plan *p, int64_t task) { return gemm_min((task + 1) * p->step, p->rows); }

static void add_task(void *arg, int64_t task, int worker) {
  const long_plan *p = arg;
  (void)worker;
  for (int64_t r = task * p->step; r < task_end(p, task) && !gemm_cancelled(p->run); r++)
    add_row(p, row_at(p, p->to, r), row_at(p, p->from, r), p->run->shape.n);
}

/* Neighbours are added in pairs until one is left. */
static void sum_task(void *arg, int64_t task, int worker) {
  const long_plan *p = arg;
  const int64_t first = task * p->step, end = task_end(p, task), n = p->run->shape.n;
  char *at = p->waves + first * n * p->size;
  (void)worker;
  for (int64_t step = 1; step < p->summed && !gemm_cancelled(p->run); step *= 2)
    for (int64_t i = 0; i + step < p->summed; i += 2 * step)
      add_row(p, at + i * p->part, at + (i + step) * p->part, (end - first) * n);
  for (int64_t r = first; r < end; r++) memcpy(row_at(p, p->to, r), p->waves + r * n * p->size, (size_t)(n * p->size));
}

static void narrow_task(void *arg, int64_t task, int worker) {
  const long_plan *p = arg;
  const gemm_run *run = p->run;
  const ts_gemm_shape *s = &run->shape;
  (void)worker;
  for (int64_t r = task * p->step; r < task_end(p, task); r++) {
    int64_t at = (p->first_batch + r / s->m) * s->out_batch + r % s->m * s->out_row;
    ts_gemm_narrow(run->gemm->types.out, row_at(p, &p->places[0], r), s->n, run->out + at * run->size);
  }
}

static void run_tasks(long_plan *p, ts_task_fn task) {
  const int64_t tasks = gemm_ceil_div(p->rows, p->step);
  ts_parallel_run(tasks == 1 ? &ts_parallel_serial : p->run->parallel, tasks, task, p);
}

/* Adds the last place to the previous one. */
static void fold(long_plan *p) {
  p->to = &p->places[p->count - 2];
  p->from = &p->places[p->count - 1];
  run_tasks(p, add_task);
  p->count--;
}

/* ---- products of blocks ---- */

/* Bytes of the packed rhs before step k: blocks are packed one after the other, each with all batches. */
static int64_t packed_before(const long_plan *p, int64_t k) {
  const ts_gemm_geometry *g = &p->run->gemm->geometry;
  const int64_t cols = (int64_t)g->vectors * g->lanes, batches = p->run->shape.rhs_batch ? p->batches : 1;
  return batches * (k / p->run->gemm->depth) * gemm_ceil_div(p->run->shape.n, cols) * cols * p->size;
}

/* The product of steps [k, k + steps) of each batch; with `blocks` > 0 of that number of blocks from k on, of one
 * batch. */
static ts_status run_part(const long_plan *p, int64_t k, int64_t steps, int64_t blocks, const place *to) {
  const ts_gemm *gemm = p->run->gemm;
  gemm_run part = *p->run;
  ts_gemm_shape *s = &part.shape;
  ts_gemm_scale scale;
  part.lhs += (p->first_batch * s->lhs_batch + k * s->lhs_col) * gemm->lhs_size;
  part.rhs += (p->first_batch * s->rhs_batch + k * s->rhs_row) * gemm->rhs_size;
  part.first_k = k;
  if (part.packed) part.packed += packed_before(p, k);
  part.left = NULL;
  part.epilogue = NULL;
  part.native = true;
  part.size = (int)p->size;
  part.out = to->at;
  if (part.scale) {
    scale = *part.scale;
    scale.at = (const char *)scale.at + p->first_batch * scale.batch * (int64_t)ts_dtype_size(gemm->types.out);
    if (blocks > 0) scale.batch = 0;
    part.scale = &scale;
  }
  s->k = steps;
  s->batch = blocks > 0 ? blocks : p->batches;
  s->out_batch = (blocks > 0 ? p->part : to->batch) / p->size;
  s->out_row = to->row / p->size;
  if (blocks > 0) {
    part.batch_k = TS_CONTRACT_BLOCK;
    s->lhs_batch = TS_CONTRACT_BLOCK * s->lhs_col;
    s->rhs_batch = TS_CONTRACT_BLOCK * s->rhs_row;
  }
  if (ts_gemm_is_scaled_row(&part)) return ts_gemm_run_scaled_row(&part);
  if (ts_gemm_is_complex_vector(&part)) return ts_gemm_run_complex_vector(&part);
  return part.kernel == TS_GEMM_TILE ? ts_gemm_run_passes(&part) : ts_gemm_run_vector(&part);
}

static int64_t steps_of(const long_plan *p, int64_t block) {
  return gemm_min(TS_CONTRACT_BLOCK, p->run->shape.k - block * TS_CONTRACT_BLOCK);
}

/* Blocks [block, block + count), the last one perhaps shorter, into place `to`. */
static ts_status run_wave(long_plan *p, int64_t block, int64_t count, const place *to) {
  const int64_t k = block * TS_CONTRACT_BLOCK, n = p->run->shape.n;
  const int64_t last = steps_of(p, block + count - 1), whole = last == TS_CONTRACT_BLOCK ? count : count - 1;
  if (p->wave == 1) return run_part(p, k, last, 0, to);
  place part = {p->waves, 0, n * p->size};
  if (whole > 0) TS_TRY(run_part(p, k, TS_CONTRACT_BLOCK, whole, &part));
  part.at += whole * p->part;
  if (whole < count) TS_TRY(run_part(p, k + whole * TS_CONTRACT_BLOCK, last, 1, &part));
  p->to = to;
  p->summed = count;
  run_tasks(p, sum_task);
  return ts_check_cancelled(p->run->cancel, "a matrix product");
}

/* All blocks: their sum is in places[0]. */
static ts_status run_waves(long_plan *p) {
  p->count = 0;
  for (int64_t block = 0, wave = 0; block < p->blocks; block += p->wave, wave++) {
    const int64_t count = gemm_min(p->wave, p->blocks - block);
    TS_TRY(run_wave(p, block, count, &p->places[p->count]));
    p->count++;
    for (int64_t digits = wave; digits & 1 && count == p->wave; digits >>= 1) fold(p);
  }
  while (p->count > 1) fold(p);
  return ts_check_cancelled(p->run->cancel, "a matrix product");
}

/* ---- the plan ---- */

/* Blocks are the batch of a product where there is none, and a result alone would not occupy the threads. */
static int64_t pick_wave(const long_plan *p) {
  int64_t wave = 1;
  const int64_t most = p->run->rows ? WAVE_ROWS_BYTES : WAVE_RESULT_BYTES;
  if (p->batches > 1 || p->run->packed || p->run->quantized || p->part > most) return 1;
  while (wave < p->blocks && wave < WAVE_BLOCKS && 2 * wave * p->part <= WAVE_BYTES) wave *= 2;
  return wave;
}

/* As many as a number of waves has digits. */
static int count_places(const long_plan *p) {
  int places = 1;
  for (int64_t waves = gemm_ceil_div(p->blocks, p->wave); waves > 1; waves /= 2) places++;
  return places;
}

/* The first place is in `out`, if that has the type. */
static void set_places(long_plan *p, char *memory) {
  const ts_gemm_shape *s = &p->run->shape;
  p->places[0] =
      (place){p->run->out + p->first_batch * s->out_batch * p->size, s->out_batch * p->size, s->out_row * p->size};
  for (int i = p->run->native; i < count_places(p); i++, memory += p->part)
    p->places[i] = (place){memory, s->m * s->n * p->size, s->n * p->size};
  p->waves = memory;
}

/* A small batch is done one by one, so that the blocks of each are on all threads. */
static int64_t pick_batches(const gemm_run *run) {
  const ts_gemm_shape *s = &run->shape;
  if (run->rows || run->packed || s->batch == 1) return s->batch;
  const bool large = s->m * s->n > WAVE_RESULT_BYTES / 8;
  return large || s->batch < 2 * (int64_t)run->parallel->width ? 1 : s->batch;
}

static ts_status plan_space(long_plan *p, int64_t *out) {
  const ts_gemm_shape *s = &p->run->shape;
  p->rows = p->batches * s->m;
  p->step = gemm_max(1, TASK_ELEMENTS / s->n);
  p->blocks = gemm_ceil_div(s->k, TS_CONTRACT_BLOCK);
  bool fits = ts_mul_i64(p->rows, s->n, &p->part) && ts_mul_i64(p->part, p->size, &p->part);
  if (fits) p->wave = pick_wave(p);
  const int64_t parts = fits ? count_places(p) - p->run->native + (p->wave > 1 ? p->wave : 0) : 0;
  fits = fits && ts_mul_i64(p->part, parts, out);
  return fits ? TS_SUCCESS : ts_error(TS_RESOURCE_EXHAUSTED, "matrix product needs too much space for sums");
}

static ts_status run_batches(long_plan *p, char *memory) {
  for (p->first_batch = 0; p->first_batch < p->run->shape.batch; p->first_batch += p->batches) {
    set_places(p, memory);
    TS_TRY(run_waves(p));
    if (!p->run->native) run_tasks(p, narrow_task);
  }
  return TS_SUCCESS;
}

ts_status ts_gemm_run_long(const gemm_run *run) {
  long_plan p = {.run = run, .f64 = run->gemm->compute == TS_GEMM_F64, .size = run->gemm->geometry.element_size};
  int64_t bytes;
  void *memory;
  p.batches = pick_batches(run);
  TS_TRY(plan_space(&p, &bytes));
  TS_TRY(ts_pool_alloc(run->pool, bytes, &memory));
  ts_status status = run_batches(&p, memory);
  ts_pool_free(run->pool, memory, bytes);
  TS_TRY(status);
  if (run->epilogue) ts_gemm_show_rows(run, 0, run->shape.batch, run->parallel);
  return ts_check_cancelled(run->cancel, "a matrix product");
}
