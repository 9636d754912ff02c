/* Linear algebra of batches: one matrix a task, or several; small ones in lanes. */
#include "base/cancel.h"
#include "kernel/linalg/factor.h"
#include "kernel/linalg/linalg.h"

#define TASK_NS 50000
#define MOST_OPERANDS 2
/* No known matrix takes so many times the steps that are usual. */
#define UNUSUAL 3

typedef struct factors_state {
  ts_factor_spec spec;
  ts_dtype type;                    /* as it is stored */
  int64_t batch, units, per_task;   /* a unit is a matrix, or a group of small ones */
  int64_t stored_bytes, unit_bytes; /* of workspace: operands and results of narrower types; of a unit */
  const ts_linalg_vector *vector;   /* of groups, or NULL */
  ts_gemm *products;                /* as of ts_factor_context */
  int operands, results;
} factors_state;

typedef struct factors_run {
  const factors_state *s;
  const ts_routine_run *run;
  const ts_parallel *inner; /* for the parts of a matrix */
  const char *in[MOST_OPERANDS];
  char *out[TS_FACTOR_RESULTS];
} factors_run;

static int64_t operand_bytes(const factors_state *s, int i) {
  return ts_factor_operand_elements(&s->spec, i) * (int64_t)ts_dtype_size(s->spec.type);
}

static int64_t result_bytes(const factors_state *s, int i) {
  return ts_factor_elements(&s->spec, i) * (int64_t)ts_dtype_size(ts_factor_result_type(&s->spec, i));
}

static ts_status run_unit(const factors_run *r, int64_t unit, char *workspace) {
  const factors_state *s = r->s;
  const int64_t lanes = s->vector ? s->vector->lanes : 1, which = unit * lanes;
  const void *in[MOST_OPERANDS] = {NULL};
  void *out[TS_FACTOR_RESULTS];
  for (int i = 0; i < s->operands; i++) in[i] = r->in[i] + which * operand_bytes(s, i);
  for (int i = 0; i < s->results; i++) out[i] = r->out[i] + which * result_bytes(s, i);
  const ts_factor_context context = {s->products, r->run->pool, r->inner, r->run->cancel};
  if (!s->vector) return ts_factor_run(&s->spec, in, out, workspace, &context);
  TS_TRY(ts_check_cancelled(r->run->cancel, ts_op_name(s->spec.op)));
  ts_factor_run_group(&s->spec, s->vector, ts_linalg_min(lanes, s->batch - which), in, out, workspace);
  return TS_SUCCESS;
}

/* A single unit has the workspace of the run: workspaces of all threads would be many times as large. But parts of a
 * triangular system have one each. */
static bool has_one_workspace(const factors_state *s) { return s->units == 1 && s->spec.op != TS_OP_TRIANGULAR_SOLVE; }

static char *workspace_of(const factors_run *r, int worker) {
  const factors_state *s = r->s;
  return has_one_workspace(s) ? r->run->workspace + s->stored_bytes : r->run->thread_workspace + worker * s->unit_bytes;
}

static ts_status run_task(void *arg, int64_t task, int worker) {
  const factors_run *r = arg;
  const factors_state *s = r->s;
  const int64_t first = task * s->per_task;
  char *workspace = workspace_of(r, worker);
  for (int64_t u = first; u < ts_linalg_min(s->units, first + s->per_task); u++) TS_TRY(run_unit(r, u, workspace));
  return TS_SUCCESS;
}

/* ---- types that are stored narrower than they are computed ---- */

static void widen_operand(const factors_state *s, const void *from, int64_t count, void *to) {
  if (s->type != TS_C64) {
    ts_linalg_widen(s->type, from, count, to);
    return;
  }
  const float *x = from;
  double *y = to;
  for (int64_t i = 0; i < 2 * count; i++) y[i] = (double)x[i];
}

/* A number that becomes a zero gives +0 where the op's zeros are +0. */
static void narrow_result(const factors_state *s, int result, const void *from, void *to) {
  const int64_t count = s->batch * ts_factor_elements(&s->spec, result);
  const bool has_signs = s->spec.op != TS_OP_QR && s->spec.op != TS_OP_EIGH && s->spec.op != TS_OP_SVD;
  if (s->type != TS_C64) {
    uint16_t *y = to;
    ts_linalg_narrow(s->type, from, count, to);
    for (int64_t i = 0; !has_signs && i < count; i++)
      if (y[i] == 0x8000) y[i] = 0;
    return;
  }
  const int64_t parts = ts_factor_result_type(&s->spec, result) == TS_C128 ? 2 * count : count;
  const double *x = from;
  float *y = to;
  for (int64_t i = 0; i < parts; i++) y[i] = (float)x[i] + (has_signs ? -0.0F : 0);
}

static void widen(factors_run *r) {
  const factors_state *s = r->s;
  char *at = r->run->workspace;
  for (int i = 0; i < s->operands; i++) {
    widen_operand(s, r->in[i], s->batch * ts_factor_operand_elements(&s->spec, i), at);
    r->in[i] = at;
    at += s->batch * operand_bytes(s, i);
  }
  for (int i = 0; i < s->results; i++) {
    r->out[i] = at;
    at += s->batch * result_bytes(s, i);
  }
}

static ts_status factors_run_op(const ts_routine_plan *plan, const ts_routine_run *run) {
  const factors_state *s = plan->state;
  const bool narrow = s->type != s->spec.type;
  const bool shared = !s->vector && s->units < run->parallel->width && ts_factor_is_shared(&s->spec);
  factors_run r = {.s = s, .run = run, .inner = shared ? run->parallel : &ts_parallel_serial};
  for (int i = 0; i < s->operands; i++) r.in[i] = ts_routine_operand(run, (uint32_t)i);
  for (int i = 0; i < s->results; i++) r.out[i] = ts_routine_result(run, (uint32_t)i);
  int64_t elements = 0;
  for (int i = 0; i < s->results; i++) elements += s->batch * ts_factor_elements(&s->spec, i);
  if (elements == 0) return TS_SUCCESS;
  if (narrow) widen(&r);
  const ts_parallel *outer = shared ? &ts_parallel_serial : run->parallel;
  TS_TRY(ts_linalg_run_tasks(outer, (s->units + s->per_task - 1) / s->per_task, run_task, &r));
  for (int i = 0; narrow && i < s->results; i++)
    if (!s->spec.unread[i]) narrow_result(s, i, r.out[i], ts_routine_result(run, (uint32_t)i));
  return TS_SUCCESS;
}

/* Of narrower types: the operands and the results as they are computed. */
static bool stored_bytes(const factors_state *s, int64_t *out) {
  int64_t bytes = 0;
  for (int i = 0; i < s->operands; i++) bytes += operand_bytes(s, i);
  for (int i = 0; i < s->results; i++) bytes += result_bytes(s, i);
  *out = 0;
  if (s->type == s->spec.type) return true;
  if (!ts_mul_i64(bytes, s->batch, out) || !ts_add_i64(*out, 63, out)) return false;
  *out = *out / 64 * 64;
  return true;
}

static ts_status plan_workspace(factors_state *s, ts_routine_plan *out) {
  const int64_t own = has_one_workspace(s) ? s->unit_bytes : 0;
  out->thread_workspace = s->unit_bytes - own;
  if (stored_bytes(s, &s->stored_bytes) && ts_add_i64(s->stored_bytes, own, &out->workspace)) return TS_SUCCESS;
  return ts_error(TS_RESOURCE_EXHAUSTED, "%s needs too much workspace", ts_op_name(s->spec.op));
}

/* By operand. */
static const bool *inplace_of(ts_opcode op) {
  static const bool in_place[] = {false, true};
  return op == TS_OP_CHOLESKY ? in_place + 1 : op == TS_OP_TRIANGULAR_SOLVE ? in_place : NULL;
}

static ts_status factors_plan(const ts_routine_request *request, ts_routine_plan *out) {
  const ts_op *op = ts_graph_op(request->graph, request->op);
  const ts_value *a = ts_graph_value(request->graph, op->operands[0]);
  const ts_value *last = ts_graph_value(request->graph, op->operands[op->operand_count - 1]);
  factors_state *s;
  TS_TRY(TS_ARENA_ARRAY(request->arena, 1, &s));
  *s = (factors_state){.spec = ts_factor_spec_of(op, a->dtype, a->shape, last->shape),
                       .type = a->dtype,
                       .batch = ts_linalg_batch(a->shape),
                       .operands = (int)op->operand_count,
                       .results = ts_op_results(op->code)};
  for (int i = 0; i < s->results; i++) s->spec.unread[i] = request->unread >> i & 1;
  out->state = s;
  out->varies = op->code == TS_OP_EIGH || op->code == TS_OP_SVD;
  out->inplace = inplace_of(op->code);
  s->vector = ts_factor_lanes(&s->spec, s->batch);
  if (!s->vector) TS_TRY(ts_factor_products(&s->spec, &s->products));
  const int64_t lanes = s->vector ? s->vector->lanes : 1;
  s->units = (s->batch + lanes - 1) / lanes;
  const double ns = s->vector ? ts_factor_group_cost(&s->spec, s->vector) : ts_factor_cost(&s->spec),
               all = 200 + ns * (double)s->units;
  s->per_task = ns > TASK_NS ? 1 : (int64_t)(TASK_NS / ns) + 1;
  out->cost_ns = all < 4e18 ? (int64_t)all : INT64_MAX / 2;
  if (out->varies) out->most_ns = out->cost_ns < INT64_MAX / UNUSUAL ? UNUSUAL * out->cost_ns : 0;
  if (s->vector)
    s->unit_bytes = ts_factor_group_workspace(&s->spec, s->vector);
  else
    TS_TRY(ts_factor_workspace(&s->spec, s->products, &s->unit_bytes));
  return plan_workspace(s, out);
}

static void factors_deinit(ts_routine_plan *plan) {
  if (plan->state) ts_gemm_release(((factors_state *)plan->state)->products);
}

const ts_routine ts_factor_routine = {"factors", factors_plan, NULL, factors_run_op, factors_deinit};
