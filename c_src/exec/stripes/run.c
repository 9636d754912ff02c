/* Runs of stripes. A task has some batches, or some rows of one batch; its thread packs the right sides of a batch
 * once.
 */
#include "exec/stripes/stripes.h"

#include "base/cancel.h"

#include <string.h>

/* What a thread works with. */
typedef struct worker {
  int64_t packed; /* the batch whose right sides are packed; -1: none */
  ts_status failure;
  int64_t *words;
  char *first, *second; /* packed right sides */
  char *product, *rows; /* of a stripe: what the launch reads, and what it writes */
  char *scratch;        /* of the launch */
} worker;

typedef struct job {
  const ts_stripes *s;
  const ts_routine_run *run;
  worker *workers;
  int64_t strips; /* of a batch */
} job;

typedef struct stripe {
  int64_t batch, batches, row, rows;
} stripe;

static int64_t min_of(int64_t a, int64_t b) { return a < b ? a : b; }
static int64_t ceil_div(int64_t a, int64_t b) { return (a + b - 1) / b; }

/* ---- one stripe ---- */

static const char *at_element(const void *from, int64_t element, ts_dtype type) {
  return (const char *)from + element * (int64_t)ts_dtype_size(type);
}

static const char *rhs_of(const job *j, const ts_stripes_product *p, uint32_t operand, int64_t batch) {
  return at_element(ts_routine_operand(j->run, operand), ts_stripes_rhs(p, batch), p->types.rhs);
}

static ts_status multiply(const job *j, const ts_stripes_product *p, const stripe *at, ts_gemm_call call) {
  ts_gemm_shape shape = p->shape;
  shape.batch = at->batches;
  shape.m = at->rows;
  call.parallel = &ts_parallel_serial;
  call.pool = j->run->pool;
  call.cancel = j->run->cancel;
  return ts_gemm_run_some(p->gemm, &shape, &call);
}

static ts_status multiply_first(const job *j, const worker *w, const stripe *at) {
  const ts_stripes_product *p = &j->s->first;
  const int64_t from = ts_stripes_lhs(p, at->batch) + at->row * p->shape.lhs_row;
  const ts_gemm_call call = {.lhs = at_element(ts_routine_operand(j->run, 0), from, p->types.lhs),
                             .rhs = rhs_of(j, p, 1, at->batch),
                             .columns = w->first,
                             .out = w->product};
  return multiply(j, p, at, call);
}

static ts_status multiply_second(const job *j, const worker *w, const stripe *at) {
  const ts_stripes_product *p = &j->s->second;
  const ts_stripes_result *r = &j->s->result;
  const int64_t to = at->batch / r->inner * r->outer_stride + at->batch % r->inner * r->inner_stride + at->row * r->row;
  const ts_gemm_call call = {.lhs = w->rows,
                             .rhs = rhs_of(j, p, j->s->rhs, at->batch),
                             .columns = w->second,
                             .out = (char *)ts_routine_result(j->run, 0) + to * (int64_t)ts_dtype_size(p->types.out)};
  return multiply(j, p, at, call);
}

/* The launch finds its row r, of all rows of all batches, at r pitches from its addresses. */
static void launch(const job *j, const worker *w, const stripe *at) {
  const ts_stripes *s = j->s;
  const ts_step_launch *l = s->work->launches;
  const int64_t row = at->batch * s->first.shape.m + at->row, cols = s->first.shape.n;
  const ts_launch_part part = {.pitch = cols, .row = row, .rows = at->batches * at->rows, .cols = cols};
  for (int32_t i = 0; i < s->read_count; i++) w->words[s->reads[i]] = (int64_t)(intptr_t)w->product - row * s->pitch;
  w->words[s->write] = (int64_t)(intptr_t)w->rows - row * s->out_pitch;
  ts_launch_run_part(l->launch, l->entry, w->words, &part, w->scratch);
}

static void show(const job *j, const stripe *at, int index) {
  const ts_epilogue *epilogue = j->run->epilogue;
  for (int64_t b = at->batch; epilogue && b < at->batch + at->batches; b++) {
    const ts_epilogue_part part = {b, at->row, at->rows, 0, j->s->space.cols};
    epilogue->run(epilogue->context, &part, index);
  }
}

static ts_status run_stripe(const job *j, const worker *w, const stripe *at, int index) {
  TS_TRY(multiply_first(j, w, at));
  launch(j, w, at);
  TS_TRY(multiply_second(j, w, at));
  show(j, at, index);
  return TS_SUCCESS;
}

/* ---- tasks ---- */

static void pack(const job *j, worker *w, int64_t batch) {
  const ts_stripes_product *first = &j->s->first, *second = &j->s->second;
  if (w->packed == batch) return;
  if (w->first) ts_gemm_pack_columns(first->gemm, &first->shape, rhs_of(j, first, 1, batch), w->first);
  if (w->second) ts_gemm_pack_columns(second->gemm, &second->shape, rhs_of(j, second, j->s->rhs, batch), w->second);
  w->packed = batch;
}

/* Stripes are cut such that those of a batch have nearly equal rows, in whole tiles. */
static void run_task(void *arg, int64_t task, int index) {
  const job *j = arg;
  const ts_stripes *s = j->s;
  worker *w = &j->workers[index];
  const int64_t batch = task / s->parts * s->batches, part = task % s->parts;
  const int64_t batches = min_of(s->batches, s->batch - batch), end = j->strips * (part + 1) / s->parts;
  for (int64_t i = j->strips * part / s->parts; i < end && !w->failure && !ts_cancelled(j->run->cancel); i++) {
    const stripe at = {batch, batches, i * s->rows, min_of(s->rows, s->first.shape.m - i * s->rows)};
    pack(j, w, batch);
    w->failure = run_stripe(j, w, &at, index);
  }
}

/* ---- runs ---- */

static void lay_out(const ts_stripes *s, char *memory, worker *out) {
  int64_t bytes[TS_STRIPES_PARTS];
  char *at[TS_STRIPES_PARTS];
  ts_stripes_memory(s, bytes);
  for (int i = 0; i < TS_STRIPES_PARTS; i++) {
    at[i] = bytes[i] > 0 ? memory : NULL;
    memory += bytes[i];
  }
  *out = (worker){.packed = -1,
                  .words = (int64_t *)(void *)at[TS_STRIPES_WORDS],
                  .first = at[TS_STRIPES_FIRST],
                  .second = at[TS_STRIPES_SECOND],
                  .product = at[TS_STRIPES_PRODUCT],
                  .rows = at[s->in_place ? TS_STRIPES_PRODUCT : TS_STRIPES_ROWS],
                  .scratch = at[TS_STRIPES_SCRATCH]};
}

static ts_status run_all(job *j, int width) {
  const ts_stripes *s = j->s;
  const int64_t tasks = ceil_div(s->batch, s->batches) * s->parts;
  const ts_parallel *parallel = s->space.is_parallel ? j->run->parallel : &ts_parallel_serial;
  const ts_launch *l = s->work->launches->launch;
  const size_t count = (size_t)ts_kernel_arg_count(&l->desc);
  const ts_launch_memory of = {j->run->operands + TS_STRIPES_KERNEL_OPERANDS, j->run->results, NULL};
  for (int i = 0; i < width; i++) {
    memcpy(j->workers[i].words, s->words, count * sizeof(*s->words));
    ts_fill_addresses(j->run->base, &of, l, j->workers[i].words);
  }
  ts_parallel_run(parallel, tasks, run_task, j);
  ts_status status = TS_SUCCESS;
  for (int i = 0; i < width; i++) {
    if (status) ts_status_free(j->workers[i].failure);
    if (!status) status = j->workers[i].failure;
  }
  return status ? status : ts_check_cancelled(j->run->cancel, "a product of a product");
}

static ts_status stripes_run(const ts_routine_plan *plan, const ts_routine_run *run) {
  const ts_stripes *s = plan->state;
  const int width = s->space.is_parallel ? run->parallel->width : 1;
  job j = {.s = s, .run = run, .strips = ceil_div(s->first.shape.m, s->rows)};
  const int64_t header = ts_pool_padded(width * (int64_t)sizeof(worker));
  int64_t bytes;
  void *memory;
  if (!ts_mul_i64(s->worker_bytes, width, &bytes) || !ts_add_i64(bytes, header, &bytes))
    return ts_error(TS_RESOURCE_EXHAUSTED, "the stripes of a product need too much space");
  TS_TRY(ts_pool_alloc(run->pool, bytes, &memory));
  j.workers = memory;
  for (int i = 0; i < width; i++) lay_out(s, (char *)memory + header + i * s->worker_bytes, &j.workers[i]);
  ts_status status = run_all(&j, width);
  ts_pool_free(run->pool, memory, bytes);
  return status;
}

static void stripes_adopt(const ts_routine_plan *plan, ts_kernel *kernel) {
  const ts_stripes *s = plan->state;
  ts_gemm_adopt(s->first.gemm, kernel);
  ts_gemm_adopt(s->second.gemm, kernel);
}

static void stripes_deinit(ts_routine_plan *plan) {
  const ts_stripes *s = plan->state;
  if (!s) return;
  ts_gemm_release(s->first.gemm);
  ts_gemm_release(s->second.gemm);
}

const ts_routine ts_stripes_routine = {"stripes", NULL, stripes_adopt, stripes_run, stripes_deinit};
