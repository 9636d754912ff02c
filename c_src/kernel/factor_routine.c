/* qr, eigh and svd of batches: one matrix a task, or several small ones. */
#include "kernel/factor.h"
#include "kernel/linalg.h"

#define TASK_NS 50000
#define MOST_RESULTS 3

typedef struct factors_state {
  ts_factor_spec spec;
  ts_dtype type; /* as it is stored */
  int64_t batch, per_task;
  int64_t thread_bytes;
  int results;
} factors_state;

typedef struct factors_run {
  const factors_state *s;
  const ts_routine_run *run;
  const char *in;
  char *out[MOST_RESULTS];
} factors_run;

static int64_t element_count(const factors_state *s) { return s->batch * s->spec.rows * s->spec.cols; }

static ts_status run_task(void *arg, int64_t task, int worker) {
  const factors_run *r = arg;
  const factors_state *s = r->s;
  const int64_t size = (int64_t)ts_dtype_size(s->spec.type), first = task * s->per_task;
  for (int64_t b = first; b < ts_linalg_min(s->batch, first + s->per_task); b++) {
    void *out[MOST_RESULTS];
    for (int i = 0; i < s->results; i++) out[i] = r->out[i] + b * ts_factor_elements(&s->spec, i) * size;
    TS_TRY(ts_factor_run(&s->spec, r->in + b * s->spec.rows * s->spec.cols * size, out,
                         r->run->thread_workspace + worker * s->thread_bytes, r->run->cancel));
  }
  return TS_SUCCESS;
}

static void widen(factors_run *r) {
  const factors_state *s = r->s;
  float *at = (float *)(void *)r->run->workspace;
  ts_linalg_widen(s->type, r->in, element_count(s), at);
  r->in = r->run->workspace;
  at += element_count(s);
  for (int i = 0; i < s->results; i++) {
    r->out[i] = (char *)at;
    at += s->batch * ts_factor_elements(&s->spec, i);
  }
}

static ts_status factors_run_op(const ts_routine_plan *plan, const ts_routine_run *run) {
  const factors_state *s = plan->state;
  factors_run r = {.s = s, .run = run, .in = ts_routine_operand(run, 0)};
  for (int i = 0; i < s->results; i++) r.out[i] = ts_routine_result(run, (uint32_t)i);
  if (s->batch == 0) return TS_SUCCESS;
  if (s->type != s->spec.type) widen(&r);
  TS_TRY(ts_linalg_run_tasks(run->parallel, (s->batch + s->per_task - 1) / s->per_task, run_task, &r));
  for (int i = 0; s->type != s->spec.type && i < s->results; i++)
    ts_linalg_narrow(s->type, (const float *)(const void *)r.out[i], s->batch * ts_factor_elements(&s->spec, i),
                     ts_routine_result(run, (uint32_t)i));
  return TS_SUCCESS;
}

/* Of half types: the operand and the results in f32. */
static ts_status plan_workspace(const factors_state *s, ts_routine_plan *out) {
  int64_t elements = s->spec.rows * s->spec.cols;
  if (s->type == s->spec.type) return TS_SUCCESS;
  for (int i = 0; i < s->results; i++) elements += ts_factor_elements(&s->spec, i);
  if (ts_mul_i64(elements, s->batch, &elements) && ts_mul_i64(elements, 4, &out->workspace)) return TS_SUCCESS;
  return ts_error(TS_RESOURCE_EXHAUSTED, "%s needs too much workspace", ts_op_name(s->spec.op));
}

static ts_status factors_plan(const ts_routine_request *request, ts_routine_plan *out) {
  const ts_op *op = ts_graph_op(request->graph, request->op);
  const ts_value *a = ts_graph_value(request->graph, op->operands[0]);
  factors_state *s;
  TS_TRY(TS_ARENA_ARRAY(request->arena, 1, &s));
  *s = (factors_state){.spec = ts_factor_spec_of(op, a->dtype, a->shape),
                       .type = a->dtype,
                       .batch = ts_linalg_batch(a->shape),
                       .results = ts_op_results(op->code)};
  out->state = s;
  const double ns = ts_factor_cost(&s->spec), all = 200 + ns * (double)s->batch;
  s->per_task = ns > TASK_NS ? 1 : (int64_t)(TASK_NS / ns) + 1;
  out->cost_ns = all < 4e18 ? (int64_t)all : INT64_MAX / 2;
  TS_TRY(ts_factor_workspace(&s->spec, &s->thread_bytes));
  out->thread_workspace = s->thread_bytes;
  return plan_workspace(s, out);
}

const ts_routine ts_factor_routine = {"factors", factors_plan, NULL, factors_run_op, NULL};
