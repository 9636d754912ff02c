/* sort, argsort and top_k as routines. */
#include "base/alloc.h"
#include "kernel/routine.h"
#include "kernel/sort/sort.h"
#include "kernel/sort/sort_first.h"
#include "kernel/sort/sort_internal.h"
#include "kernel/sort/sort_top.h"

static ts_sort_spec spec_of(const ts_op *op, const ts_value *operand) {
  const ts_attrs *attrs = op->attrs;
  if (op->code == TS_OP_SORT)
    return (ts_sort_spec){operand->dtype, operand->shape, attrs->sort.axis, attrs->sort.descending, TS_DTYPE_NONE};
  return (ts_sort_spec){operand->dtype, operand->shape, attrs->argsort.axis, attrs->argsort.descending,
                        attrs->argsort.dtype};
}

static ts_status sort_plan(const ts_routine_request *request, ts_routine_plan *out) {
  const ts_op *op = ts_graph_op(request->graph, request->op);
  ts_sort_spec spec = spec_of(op, ts_graph_value(request->graph, op->operands[0]));
  ts_sort_plan *plan;
  if (!ts_sort_has_type(spec.dtype)) return TS_SUCCESS;
  TS_TRY(TS_ARENA_ARRAY(request->arena, 1, &plan));
  TS_TRY(ts_sort_plan_make(&spec, plan));
  out->state = plan;
  out->varies = plan->method == TS_SORT_LINES || plan->method == TS_SORT_SPLIT; /* a network takes the same for all */
  out->cost_ns = plan->cost_ns;
  out->most_ns = ts_sort_most_ns(out->cost_ns);
  out->workspace = plan->workspace;
  out->thread_workspace = plan->thread_workspace;
  return TS_SUCCESS;
}

static ts_sort_resources resources_of(const ts_routine_run *run) {
  return (ts_sort_resources){run->parallel, run->workspace, run->thread_workspace, run->cancel};
}

static ts_status sort_run(const ts_routine_plan *plan, const ts_routine_run *run) {
  ts_sort_resources resources = resources_of(run);
  return ts_sort_run(plan->state, &resources, ts_routine_operand(run, 0), ts_routine_result(run, 0));
}

const ts_routine ts_sort_routine = {"sort", sort_plan, NULL, sort_run, NULL};

/* ---- top_k */

typedef struct top_k_state {
  bool values; /* nothing reads the positions, and this is faster */
  ts_top_k_plan plan;
  ts_sort_first_plan first;
} top_k_state;

/* After the plan with positions. */
static ts_status plan_values(const ts_routine_request *request, top_k_state *state) {
  const ts_op *op = ts_graph_op(request->graph, request->op);
  const ts_value *operand = ts_graph_value(request->graph, op->operands[0]);
  if ((request->unread & 2) == 0 || state->plan.k == 0 || state->plan.sort.lines == 0) return TS_SUCCESS;
  TS_TRY(ts_sort_first_plan_make(operand->dtype, operand->shape, state->plan.k, &state->first));
  state->values = state->first.parts || state->first.cost_ns < state->plan.cost_ns;
  return TS_SUCCESS;
}

static ts_status top_k_plan(const ts_routine_request *request, ts_routine_plan *out) {
  const ts_op *op = ts_graph_op(request->graph, request->op);
  const ts_value *operand = ts_graph_value(request->graph, op->operands[0]);
  top_k_state *state;
  if (!ts_sort_has_type(operand->dtype)) return TS_SUCCESS;
  TS_TRY(TS_ARENA_ARRAY(request->arena, 1, &state));
  *state = (top_k_state){0};
  TS_TRY(ts_top_k_plan_make(operand->dtype, operand->shape, op->attrs->top_k.k, &state->plan));
  TS_TRY(plan_values(request, state));
  out->state = state;
  out->varies = true;
  out->cost_ns = state->values ? state->first.cost_ns : state->plan.cost_ns;
  out->most_ns = state->values ? state->first.most_ns : state->plan.most_ns;
  out->workspace = state->values ? state->first.workspace : state->plan.workspace;
  out->thread_workspace = state->values ? state->first.thread_workspace : state->plan.thread_workspace;
  return TS_SUCCESS;
}

static ts_status top_k_run(const ts_routine_plan *plan, const ts_routine_run *run) {
  const top_k_state *state = plan->state;
  ts_sort_resources resources = resources_of(run);
  if (state->values)
    return ts_sort_first_run(&state->first, &resources, ts_routine_operand(run, 0), ts_routine_result(run, 0));
  return ts_top_k_run(&state->plan, &resources, ts_routine_operand(run, 0), ts_routine_result(run, 0),
                      ts_routine_result(run, 1));
}

const ts_routine ts_top_k_routine = {"top_k", top_k_plan, NULL, top_k_run, NULL};
