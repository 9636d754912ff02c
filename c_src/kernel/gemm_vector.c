/* Matrix times vector: limited by memory, so nothing is packed. Each result's
 * chain stays in the order of k; vectors run across results. */
#include "kernel/gemm_internal.h"

#include <string.h>

/* out[r] = sum of v[k] * x[r, k]: both sides of a product in one form. */
typedef struct vector_form {
  int64_t results, k;
  const char *x, *v;
  int64_t x_batch, x_result, x_k; /* elements */
  int64_t v_batch, v_k;
  int64_t out_result;
} vector_form;

static vector_form as_vector(const ts_gemm_shape *s, const void *lhs, const void *rhs) {
  if (s->n == 1)
    return (vector_form){s->m,       s->k,       lhs,          rhs,        s->lhs_batch,
                         s->lhs_row, s->lhs_col, s->rhs_batch, s->rhs_row, s->out_row};
  return (vector_form){s->n, s->k, rhs, lhs, s->rhs_batch, s->rhs_col, s->rhs_row, s->lhs_batch, s->lhs_col, 1};
}

/* Vectors run along results that are contiguous in x: out += v[k] * x[k, :]. */
static bool can_axpy(const vector_form *f) { return f->x_result == 1 || f->results == 1; }

/* Vectors are made of rows of x that are contiguous along k. */
static bool can_dot(const ts_gemm *gemm, const vector_form *f) {
  return f->x_k == 1 && f->results >= gemm->geometry.lanes && f->k * gemm->size >= 16;
}

ts_gemm_kernel ts_gemm_pick_kernel(const ts_gemm *gemm, const ts_gemm_shape *shape) {
  if (!gemm->native || (shape->m != 1 && shape->n != 1)) return TS_GEMM_TILE;
  vector_form f = as_vector(shape, NULL, NULL);
  return can_axpy(&f) ? TS_GEMM_AXPY : can_dot(gemm, &f) ? TS_GEMM_DOT : TS_GEMM_TILE;
}

/* Results of one task: small enough that they stay in the first cache while rows
 * of x stream by, and a multiple of every vector length. */
#define AXPY_RESULTS 2048
#define DOT_RESULTS 64
#define TASK_BYTES (256 << 10)         /* of x, at least, where there are so many */
#define PARALLEL_MIN_BYTES (512 << 10) /* of x; below, waking another thread costs as much */

typedef struct vector_plan {
  const gemm_run *run;
  vector_form f;
  bool dot;
  int64_t chunk, chunks; /* results of a task (the last one has the rest too), tasks of a batch */
  char *space;           /* for each worker: v, then results that cannot be written in place */
  int64_t v_bytes, worker_bytes;
} vector_plan;

static void copy_strided(char *to, int64_t to_stride, const char *from, int64_t from_stride, int64_t count, int size) {
  for (int64_t i = 0; i < count; i++) memcpy(to + i * to_stride * size, from + i * from_stride * size, (size_t)size);
}

/* A rest below one vector is done with the rows before it, again. */
static void run_kernel(const vector_plan *p, const char *x, const char *v, int64_t count, char *out) {
  const vector_form *f = &p->f;
  int64_t size = p->run->gemm->size, lanes = p->run->gemm->geometry.lanes;
  int64_t args[TS_GEMM_ARGS] = {[TS_GEMM_K] = f->k,
                                [TS_GEMM_LHS] = (int64_t)(intptr_t)v,
                                [TS_GEMM_RHS] = (int64_t)(intptr_t)x,
                                [TS_GEMM_RHS_STRIDE] = (p->dot ? f->x_result : f->x_k) * size,
                                [TS_GEMM_OUT] = (int64_t)(intptr_t)out};
  ts_kernel_fn kernel = ts_kernel_entry(p->run->gemm->kernels[p->dot ? TS_GEMM_DOT : TS_GEMM_AXPY]);
  if (!p->dot) {
    memset(out, 0, (size_t)(count * size));
    kernel(args, 0, count, NULL);
    return;
  }
  int64_t whole = count / lanes * lanes;
  kernel(args, 0, whole, NULL);
  if (whole < count) kernel(args, count - lanes, count, NULL);
}

static void vector_task(void *arg, int64_t index, int worker) {
  const vector_plan *p = arg;
  const gemm_run *run = p->run;
  const vector_form *f = &p->f;
  if (gemm_cancelled(run)) return;
  int size = run->gemm->size;
  int64_t batch = index / p->chunks, chunk = index % p->chunks, first = chunk * p->chunk;
  int64_t count = chunk + 1 == p->chunks ? f->results - first : p->chunk;
  char *space = p->space + worker * p->worker_bytes, *results = space + p->v_bytes;
  char *out = run->out + (batch * run->shape.out_batch + first * f->out_result) * size;
  const char *v = f->v + batch * f->v_batch * size;
  const char *x = f->x + (batch * f->x_batch + first * f->x_result) * size;
  if (f->v_k != 1) {
    copy_strided(space, 1, v, f->v_k, f->k, size);
    v = space;
  }
  bool aside = f->out_result != 1 && count > 1;
  run_kernel(p, x, v, count, aside ? results : out);
  if (aside) copy_strided(out, f->out_result, results, 1, count, size);
  if (!run->epilogue) return;
  if (run->shape.n == 1) {
    run->epilogue(run->context, batch, first, count, 0, 1, worker);
  } else {
    run->epilogue(run->context, batch, 0, 1, first, count, worker);
  }
}

static void plan_chunks(vector_plan *p) {
  const vector_form *f = &p->f;
  int64_t most = p->dot ? DOT_RESULTS : AXPY_RESULTS, least = p->dot ? TS_GEMM_MAX_LANES : AXPY_RESULTS / 2;
  int64_t per_result = gemm_min(TASK_BYTES, f->k * p->run->gemm->size);
  p->chunk = gemm_min(most, gemm_max(least, TASK_BYTES / per_result / TS_GEMM_MAX_LANES * TS_GEMM_MAX_LANES));
  p->chunks = gemm_max(1, f->results / p->chunk);
}

ts_status ts_gemm_run_vector(const gemm_run *run) {
  int size = run->gemm->size;
  vector_plan p = {.run = run, .f = as_vector(&run->shape, run->lhs, run->rhs)};
  p.dot = ts_gemm_pick_kernel(run->gemm, &run->shape) == TS_GEMM_DOT;
  plan_chunks(&p);
  int64_t tasks = run->shape.batch * p.chunks;
  bool small = tasks == 1 || run->shape.batch * p.f.results < PARALLEL_MIN_BYTES / size / p.f.k;
  const ts_parallel *parallel = small ? &ts_parallel_serial : run->parallel;
  p.v_bytes = p.f.v_k == 1 ? 0 : gemm_ceil_div(p.f.k * size, 64) * 64;
  p.worker_bytes = p.v_bytes + 2 * p.chunk * size;
  p.worker_bytes = gemm_ceil_div(p.worker_bytes, 64) * 64;
  int64_t bytes = p.worker_bytes * parallel->width;
  void *memory;
  TS_TRY(ts_pool_alloc(run->pool, bytes, &memory));
  p.space = memory;
  ts_parallel_run(parallel, tasks, vector_task, &p);
  ts_pool_free(run->pool, memory, bytes);
  return gemm_cancelled(run) ? ts_error(TS_CANCELLED, "matrix product cancelled") : TS_SUCCESS;
}
