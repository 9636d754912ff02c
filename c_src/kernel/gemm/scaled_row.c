#include "kernel/gemm/scaled_row.h"

#include "jit/session/target.h"

#include <string.h>

/* Columns of a task: their sums and the pieces of rows that are read together stay in L1. Bytes of a matrix that are
 * worth a thread. */
#define TASK_COLS 1024
#define TASK_TURNED_COLS 64 /* whose lines are read side by side */
#define PARALLEL_MIN_BYTES (256 << 10)

typedef struct row_plan {
  const gemm_run *run;
  const scaled_row_code *code;
  int64_t chunk, chunks;         /* columns of a task, tasks of a batch */
  float *x, *workers;            /* of each batch k elements; of each worker three buffers */
  int64_t buffer, worker_floats; /* floats */
} row_plan;

static const char *scale_at(const gemm_run *run, int64_t batch, int64_t col) {
  const ts_gemm_scale *s = run->scale;
  return (const char *)s->at + (batch * s->batch + col * s->unit) * (int64_t)ts_dtype_size(run->gemm->types.out);
}

/* Of bf16. Rounding to it takes no NaN: the product of 0 and an infinite scale is one. */
static bool are_finite(const gemm_run *run) {
  const ts_gemm_shape *s = &run->shape;
  const int64_t batches = run->scale->batch ? s->batch : 1, cols = run->scale->unit ? s->n : 1;
  bool finite = true;
  for (int64_t b = 0; b < batches; b++) {
    const uint16_t *at = (const uint16_t *)(const void *)scale_at(run, b, 0);
    for (int64_t c = 0; c < cols; c++) finite &= (at[c * run->scale->unit] & 0x7F80) != 0x7F80;
  }
  return finite;
}

static bool has_form(const ts_gemm_types *types, const ts_gemm_shape *shape) {
  return shape->m == 1 && (shape->rhs_col == 1 || shape->rhs_row == 1) &&
         (types->rhs == TS_S8 || types->rhs == TS_U8) && (types->out == TS_F32 || types->out == TS_BF16);
}

bool ts_gemm_is_scaled_row(const gemm_run *run) {
  if (!run->scale || run->scale->operand != 1 || run->rows || run->gemm->own) return false;
  if (!has_form(&run->gemm->types, &run->shape) || ts_gemm_goes_on(run)) return false;
  return run->gemm->types.out == TS_F32 || are_finite(run);
}

/* The task's scales in f32, whole blocks of them. */
static void widen_scales(const gemm_run *run, int64_t batch, int64_t col, int64_t cols, float *out) {
  const void *from = scale_at(run, batch, col);
  const int64_t unit = run->scale->unit;
  for (int64_t c = 0; c < cols; c++)
    out[c] = run->gemm->types.out == TS_F32 ? ((const float *)from)[c * unit]
                                            : ts_f32_from_bits((uint32_t)((const uint16_t *)from)[c * unit] << 16);
  for (int64_t c = cols; c < gemm_round_up(cols, SCALED_ROW_BLOCK); c++) out[c] = 0;
}

static void row_task(void *arg, int64_t index, int worker) {
  const row_plan *p = arg;
  const gemm_run *run = p->run;
  const ts_gemm_shape *s = &run->shape;
  const int64_t batch = index / p->chunks, col = index % p->chunks * p->chunk, cols = gemm_min(p->chunk, s->n - col);
  float *at = p->workers + worker * p->worker_floats;
  if (gemm_cancelled(run)) return;
  widen_scales(run, batch, col, cols, at);
  const scaled_row row = {.x = p->x + batch * s->k,
                          .matrix = run->rhs + batch * s->rhs_batch + col * s->rhs_col,
                          .row = s->rhs_row,
                          .col = s->rhs_col,
                          .k = s->k,
                          .cols = cols,
                          .scales = at,
                          .sums = at + p->buffer,
                          .chains = at + 2 * p->buffer,
                          .is_signed = run->gemm->types.rhs == TS_S8,
                          .rounds = run->gemm->types.out == TS_BF16};
  p->code->run(&row);
  char *out = run->out + (batch * s->out_batch + col) * run->size;
  if (run->native)
    memcpy(out, row.sums, (size_t)cols * sizeof(float));
  else
    ts_gemm_narrow(run->gemm->types.out, row.sums, cols, out);
  if (run->epilogue && !run->epilogue->whole_rows) gemm_show(run, (ts_epilogue_part){batch, 0, 1, col, cols}, worker);
}

static void pack_task(void *arg, int64_t batch, int worker) {
  (void)worker;
  const row_plan *p = arg;
  const gemm_run *run = p->run;
  if (gemm_cancelled(run)) return;
  const gemm_pack pack = {.dtype = run->gemm->types.lhs,
                          .compute = TS_GEMM_F32,
                          .unit_stride = run->shape.lhs_row,
                          .k_stride = run->shape.lhs_col,
                          .step = 1,
                          .width = 1,
                          .scale_type = TS_DTYPE_NONE};
  const char *from = run->lhs + batch * run->shape.lhs_batch * run->gemm->lhs_size;
  ts_gemm_pack(&pack, from, 1, run->shape.k, (char *)(p->x + batch * run->shape.k), 0);
}

bool ts_gemm_scaled_row_is_large(const ts_gemm_types *types, const ts_gemm_shape *shape) {
  return has_form(types, shape) && shape->k > 0 && shape->batch * shape->n >= PARALLEL_MIN_BYTES / shape->k;
}

ts_status ts_gemm_run_scaled_row(const gemm_run *run) {
  const ts_gemm_shape *s = &run->shape;
  const bool large = ts_gemm_scaled_row_is_large(&run->gemm->types, s);
  const ts_parallel *parallel = large ? run->parallel : &ts_parallel_serial;
  row_plan p = {.run = run, .code = TS_TARGET_PICK(ts_scaled_row)};
  const int64_t share = gemm_round_up(gemm_ceil_div(s->n, 2 * (int64_t)parallel->width), SCALED_ROW_BLOCK);
  p.chunk = gemm_min(s->rhs_col == 1 ? TASK_COLS : TASK_TURNED_COLS, share);
  p.chunks = gemm_ceil_div(s->n, p.chunk);
  p.buffer = p.chunk;
  p.worker_floats = 3 * p.buffer;
  int64_t floats;
  void *memory;
  if (!ts_mul_i64(s->batch, s->k, &floats) || !ts_add_i64(floats, 16 + p.worker_floats * parallel->width, &floats) ||
      !ts_mul_i64(floats, 4, &floats))
    return ts_error(TS_RESOURCE_EXHAUSTED, "matrix product needs too much packing space");
  TS_TRY(ts_pool_alloc(run->pool, floats, &memory));
  p.workers = memory;
  p.x = p.workers + p.worker_floats * parallel->width;
  ts_parallel_run(parallel, s->batch, pack_task, &p);
  ts_parallel_run(parallel, s->batch * p.chunks, row_task, &p);
  ts_pool_free(run->pool, memory, floats);
  TS_TRY(ts_check_cancelled(run->cancel, "a matrix product"));
  if (run->epilogue && run->epilogue->whole_rows) ts_gemm_show_rows(run, 0, s->batch, parallel);
  return TS_SUCCESS;
}
