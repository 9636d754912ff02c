#include "kernel/gemm/complex/complex_vector.h"

#include "jit/session/target.h"
#include "kernel/gemm/thin/thin.h"

#include <string.h>

/* Bytes of the results of a task: the results and the sums of a chain stay in L1. Below PARALLEL_MIN_BYTES of the
 * matrix, waking another thread costs as much. */
#define TASK_BYTES 8192
#define TASK_MIN_BYTES 2048
/* Tiles cost less with more columns, and with fewer terms. */
enum { FEW_ITEMS = 4, MANY_TERMS = 8 };
#define PARALLEL_MIN_BYTES (512 << 10)
/* The same of terms, for each byte of a vector. */
#define PARALLEL_MIN_SUMS 4096

/* One operand: of lhs the units are rows, of rhs columns. Distances are in parts. */
typedef struct side {
  const char *at;
  int64_t batch, unit, k;
} side;

typedef struct vector_plan {
  const gemm_run *run;
  const complex_vector_code *code;
  const ts_parallel *parallel;
  side x, v;
  bool x_is_left;
  int64_t items, results, k;
  int64_t out_item, out_result; /* in parts */
  int64_t chunk, chunks;        /* results of a task, tasks of a batch */
  int64_t pitch;                /* complex_vectors.pitch */
  int64_t worker_bytes;
  char *workers;
} vector_plan;

bool ts_gemm_is_complex_vector(const gemm_run *run) {
  if (!run->gemm->complex || run->rows || run->packed || run->left || run->adds || ts_gemm_goes_on(run)) return false;
  const int64_t m = run->shape.m, n = run->shape.n / 2, k = run->shape.k / 2;

  return gemm_min(m, n) <= FEW_ITEMS || (m < n && m <= COMPLEX_ITEMS && k >= MANY_TERMS);
}

/* ts_gemm_shape_of_parts has the distances of numbers along k, and along the columns of rhs. With one step of k its
 * distance has no meaning. */
static void set_sides(vector_plan *p) {
  const ts_gemm_shape *s = &p->run->shape;
  const int64_t m = s->m, n = s->n / 2;
  const side lhs = {p->run->lhs, s->lhs_batch, s->lhs_row, 2 * s->lhs_col},
             rhs = {p->run->rhs, s->rhs_batch, 2 * s->rhs_col, 2 * s->rhs_row};
  const bool left = n <= m && m > 1; /* of one number, rhs costs less */
  p->x_is_left = left;
  p->x = left ? lhs : rhs;
  p->v = left ? rhs : lhs;
  p->items = left ? n : m;
  p->results = left ? m : n;
  p->k = s->k / 2;
  p->out_item = left ? 2 : s->out_row;
  p->out_result = left ? s->out_row : 2;
}

/* The code of the instruction set whose vectors the results fill. */
static const complex_vector_code *pick_code(const vector_plan *p) {
  const complex_vector_code *code = TS_TARGET_PICK(ts_complex_vector);
#if defined(__x86_64__)
  if (code == &ts_complex_vector_avx512 && p->x.unit == 2 && 4 * p->results * p->run->size <= code->vector_bytes)
    return &ts_complex_vector_avx2;
#endif
  return code;
}

static void plan_tasks(vector_plan *p) {
  const ts_gemm_shape *s = &p->run->shape;
  const int64_t number = 2 * p->run->size, most = TASK_BYTES / number / p->items;
  const int64_t matrix = PARALLEL_MIN_BYTES / number / p->k, sums = p->code->vector_bytes * PARALLEL_MIN_SUMS / p->k;
  const bool large = s->batch * p->results >= gemm_min(matrix, sums / p->items);
  p->parallel = large ? p->run->parallel : &ts_parallel_serial;
  const int64_t share = gemm_ceil_div(p->results * s->batch, 2 * (int64_t)p->parallel->width);
  /* threads share few rows: half of the vectors, with two chains each; of neighbours a task has longer pieces */
  const bool turns = p->x.unit != 2 && p->parallel->width > 1;
  const int64_t vectors = COMPLEX_VECTORS / (turns ? 2 : 1) * p->code->vector_bytes / number;
  p->chunk = gemm_max(gemm_min(most, share), turns ? vectors : TASK_MIN_BYTES / number / p->items);
  p->chunk = gemm_min(p->results, gemm_round_up(p->chunk, vectors));
  p->chunks = gemm_ceil_div(p->results, p->chunk);
}

_Static_assert(4 * THIN_NUMBERS <= 4 * COMPLEX_CHAIN * COMPLEX_VECTORS, "thin.h's factors");

static void plan_space(vector_plan *p) {
  const int64_t part = p->run->size, vector = p->code->vector_bytes;
  p->pitch = complex_vector_pitch(p->chunk, vector, part);
  p->worker_bytes = 2 * p->items * p->pitch * part + complex_vector_factors(p->items, part);
  if (p->x.unit != 2 && p->results > 1) p->worker_bytes += complex_vector_turned(vector);
  p->worker_bytes = ts_pool_padded(p->worker_bytes);
}

static void copy_results(const vector_plan *p, const char *sums, int64_t count, char *out) {
  const int64_t part = p->run->size;
  for (int64_t i = 0; i < p->items; i++) {
    const char *from = sums + i * p->pitch * part;
    char *to = out + i * p->out_item * part;
    if (p->out_result == 2)
      memcpy(to, from, (size_t)(2 * count * part));
    else if (part == 4)
      for (int64_t r = 0; r < count; r++) memcpy(to + r * p->out_result * 4, from + r * 8, 8);
    else
      for (int64_t r = 0; r < count; r++) memcpy(to + r * p->out_result * 8, from + r * 16, 16);
  }
}

/* Rows of neighbouring numbers, by thin.h: many, or long ones. A single row of c128 has too few sums side by side. */
static bool is_thin(const vector_plan *p, const complex_vectors *v) {
  const int64_t part = p->run->size;
  const int64_t lanes = thin_code_of_host()->vector_bytes / part;
  if (p->items != 1 || p->x.k != 2 || (p->x.unit == 2 && p->results > 1) || 2 * p->k * part < 16) return false;
  return v->results >= lanes || (p->k >= lanes * THIN_CHAIN && (p->results > 1 || part == 4));
}

static void run_thin(const vector_plan *p, const complex_vectors *v) {
  const thin_code *code = thin_code_of_host();
  const int64_t part = p->run->size;
  const thin_complex call = {.x = v->x,
                             .row = v->x_result * part,
                             .v = v->v,
                             .v_step = v->v_k * part,
                             .x_is_left = v->x_is_left,
                             .rows = v->results,
                             .terms = v->k,
                             .factors = v->factors,
                             .sums = v->chains,
                             .out = v->sums};
  (part == 4 ? code->c64 : code->c128)(&call);
}

static void vector_task(void *arg, int64_t index, int worker) {
  const vector_plan *p = arg;
  const gemm_run *run = p->run;
  const int64_t part = run->size, batch = index / p->chunks, first = index % p->chunks * p->chunk;
  char *memory = p->workers + worker * p->worker_bytes;
  if (gemm_cancelled(run)) return;
  complex_vectors v = {.x = p->x.at + (batch * p->x.batch + first * p->x.unit) * part,
                       .v = p->v.at + batch * p->v.batch * part,
                       .x_result = p->x.unit,
                       .x_k = p->x.k,
                       .v_item = p->v.unit,
                       .v_k = p->v.k,
                       .x_is_left = p->x_is_left,
                       .items = p->items,
                       .results = gemm_min(p->chunk, p->results - first),
                       .k = p->k,
                       .pitch = p->pitch,
                       .sums = memory};
  v.chains = v.sums + p->items * p->pitch * part;
  v.factors = v.chains + p->items * p->pitch * part;
  v.turned = v.factors + complex_vector_factors(p->items, part);
  if (is_thin(p, &v))
    run_thin(p, &v);
  else
    (part == 4 ? p->code->f32 : p->code->f64)(&v);
  copy_results(p, v.sums, v.results, run->out + (batch * run->shape.out_batch + first * p->out_result) * part);
}

ts_status ts_gemm_run_complex_vector(const gemm_run *run) {
  vector_plan p = {.run = run};
  void *memory;
  set_sides(&p);
  p.code = pick_code(&p);
  plan_tasks(&p);
  plan_space(&p);
  const int64_t bytes = p.worker_bytes * p.parallel->width, tasks = run->shape.batch * p.chunks;
  TS_TRY(ts_pool_alloc(run->pool, bytes, &memory));
  p.workers = memory;
  ts_parallel_run(tasks > 1 ? p.parallel : &ts_parallel_serial, tasks, vector_task, &p);
  ts_pool_free(run->pool, memory, bytes);
  return ts_check_cancelled(run->cancel, "a matrix product");
}
