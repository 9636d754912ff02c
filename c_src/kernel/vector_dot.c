/* The op dot_general without free dims, of floats, as a routine: a dot for each element of the batch dims. Both
 * operands have their batch dims first and the contracted ones after them, as pass/vector_dot.h leaves them. A unit of
 * work is one block of tensor/dot_order.h; the sums of the blocks are added at the end. */
#include "kernel/vector_dot.h"

#include "base/cancel.h"
#include "jit/session/target.h"
#include "kernel/routine.h"
#include "tensor/dot_order.h"

/* Bytes of one operand: less is not worth a thread. */
#define TASK_BYTES (128 << 10)
/* Bytes of one operand for each thread: as much may stay in a core's cache from run to run. */
#define CACHED_BYTES (2 << 20)

typedef struct dot_state {
  ts_dtype type;
  int64_t dots, n, block, blocks; /* block: terms; blocks: of one dot, >= 1 */
  struct {
    int64_t batch, term; /* strides, in elements */
  } x, y;
} dot_state;

typedef struct dot_run {
  const dot_state *s;
  const ts_vector_dot_code *code;
  const char *lhs, *rhs;
  void *out; /* a sum for each unit: of f64, or of f32 */
  int64_t units, per_task;
  const _Atomic bool *cancel;
} dot_run;

static int64_t least(int64_t a, int64_t b) { return a < b ? a : b; }
static int64_t ceil_div(int64_t a, int64_t b) { return (a + b - 1) / b; }

static const ts_vector_dot_code *host_code(void) { return TS_TARGET_PICK(ts_vector_dot); }

static void dot_task(void *arg, int64_t task, int worker) {
  const dot_run *r = arg;
  const dot_state *s = r->s;
  (void)worker;
  for (int64_t u = task * r->per_task; u < least(r->units, (task + 1) * r->per_task); u++) {
    const int64_t first = u % s->blocks * s->block, d = u / s->blocks;
    const int64_t count = least(s->block, s->n - first), size = (int64_t)ts_dtype_size(s->type);
    const ts_vector_dot_line x = {r->lhs + (d * s->x.batch + first * s->x.term) * size, s->x.term};
    const ts_vector_dot_line y = {r->rhs + (d * s->y.batch + first * s->y.term) * size, s->y.term};
    if (u % 64 == 0 && ts_cancelled(r->cancel)) return;
    switch (s->type) {
    case TS_F64: ((double *)r->out)[u] = r->code->f64(x, y, count); break;
    case TS_F16: ((float *)r->out)[u] = r->code->f16(x, y, count); break;
    case TS_BF16: ((float *)r->out)[u] = r->code->bf16(x, y, count); break;
    default: ((float *)r->out)[u] = r->code->f32(x, y, count); break;
    }
  }
}

/* Neighbours are added in pairs until one is left, for each dot. */
#define DEFINE_PAIRS(NAME, T)                                                             \
  static T pairs_##NAME(const dot_state *s, T *sums) {                                    \
    for (int64_t step = 1; step < s->blocks; step *= 2)                                   \
      for (int64_t i = 0; i + step < s->blocks; i += 2 * step) sums[i] += sums[i + step]; \
    return sums[0];                                                                       \
  }
DEFINE_PAIRS(f32, float)
DEFINE_PAIRS(f64, double)

/* The result of each dot, rounded to its type. */
static void end_dots(const dot_state *s, void *sums, void *out) {
  for (int64_t d = 0; d < s->dots; d++) {
    if (s->type == TS_F64)
      ((double *)out)[d] = pairs_f64(s, (double *)sums + d * s->blocks);
    else
      ts_scalar_store(s->type, ts_scalar_from_f64(s->type, (double)pairs_f32(s, (float *)sums + d * s->blocks)),
                      (char *)out + d * (int64_t)ts_dtype_size(s->type));
  }
}

/* What may stay in the caches of cores is one task for each thread: the first threads to come take them in the same
 * order, so each has the same elements again. More would come from other cores' caches, and has more tasks, so that no
 * thread waits for a late one. */
static int64_t units_per_task(const dot_state *s, int64_t units, int width) {
  const int64_t size = (int64_t)ts_dtype_size(s->type), bytes = s->dots * (s->n + 16) * size;
  int64_t tasks = bytes / TASK_BYTES;
  if (bytes <= width * (int64_t)CACHED_BYTES) tasks = least(tasks, width);
  return tasks > 1 ? ceil_div(units, tasks) : units;
}

/* True unless the sums of the blocks are the results. */
static bool needs_space(const dot_state *s) { return s->blocks > 1 || ts_dtype_size(s->type) == 2; }

static ts_status dot_run_op(const ts_routine_plan *plan, const ts_routine_run *run) {
  const dot_state *s = plan->state;
  void *const out = ts_routine_result(run, 0);
  dot_run r = {.s = s,
               .code = host_code(),
               .lhs = ts_routine_operand(run, 0),
               .rhs = ts_routine_operand(run, 1),
               .out = needs_space(s) ? run->workspace : out,
               .units = s->dots * s->blocks,
               .cancel = run->cancel};
  r.per_task = units_per_task(s, r.units, run->parallel->width);
  const int64_t tasks = r.units > 0 ? ceil_div(r.units, r.per_task) : 0;
  ts_parallel_run(tasks > 1 ? run->parallel : &ts_parallel_serial, tasks, dot_task, &r);
  TS_TRY(ts_check_cancelled(run->cancel, "dot_general"));
  if (needs_space(s)) end_dots(s, r.out, out);
  return TS_SUCCESS;
}

static bool follow(const ts_dims *dims, int64_t first) {
  for (int32_t i = 0; i < dims->rank; i++)
    if (dims->dims[i] != first + i) return false;
  return true;
}

/* The distance of an operand's terms: a vector may be a slice that is read where it lies (ts_gemm_reads_slice). */
static int64_t step_of(const ts_routine_request *request, const ts_op *op, int operand) {
  if (!(request->slices >> operand & 1)) return 1;
  const ts_value *v = ts_graph_value(request->graph, op->operands[operand]);
  return ts_graph_op(request->graph, v->op)->attrs->slice.stride.dims[0];
}

static ts_status dot_plan(const ts_routine_request *request, ts_routine_plan *out) {
  const ts_op *op = ts_graph_op(request->graph, request->op);
  const ts_value *x = ts_graph_value(request->graph, op->operands[0]);
  const ts_attrs *a = op->attrs;
  const int32_t batch = a->dot.lhs_batch.rank;
  const int64_t size = (int64_t)ts_dtype_size(ts_dtype_accumulator(x->dtype));
  dot_state *s;
  if (!ts_vector_dot_has_type(x->dtype)) return TS_SUCCESS;
  if (!follow(&a->dot.lhs_batch, 0) || !follow(&a->dot.lhs_contract, batch)) return TS_SUCCESS;
  if (!follow(&a->dot.rhs_batch, 0) || !follow(&a->dot.rhs_contract, batch)) return TS_SUCCESS;
  TS_TRY(TS_ARENA_ARRAY(request->arena, 1, &s));
  *s = (dot_state){.type = x->dtype,
                   .dots = 1,
                   .n = 1,
                   .block = ts_dot_block(size),
                   .x = {0, step_of(request, op, 0)},
                   .y = {0, step_of(request, op, 1)}};
  for (int32_t d = 0; d < x->shape->rank; d++) *(d < batch ? &s->dots : &s->n) *= x->shape->dims[d];
  s->x.batch = s->y.batch = s->n;
  s->blocks = s->n > s->block ? ceil_div(s->n, s->block) : 1;
  out->state = s;
  out->cost_ns = 20 + 15 * s->dots + s->dots * s->n * size / 100;
  if (needs_space(s)) out->workspace = ceil_div(s->dots * s->blocks * size, 64) * 64;
  return TS_SUCCESS;
}

const ts_routine ts_vector_dot_routine = {"dot", dot_plan, NULL, dot_run_op, NULL};
