/* sort, argsort and top_k as routines. */
#include "kernel/routine.h"
#include "kernel/sort/sort.h"
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
  out->varies = true;
  out->cost_ns = plan->cost_ns;
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

static ts_status top_k_plan(const ts_routine_request *request, ts_routine_plan *out) {
  const ts_op *op = ts_graph_op(request->graph, request->op);
  const ts_value *operand = ts_graph_value(request->graph, op->operands[0]);
  ts_top_k_plan *plan;
  if (!ts_sort_has_type(operand->dtype)) return TS_SUCCESS;
  TS_TRY(TS_ARENA_ARRAY(request->arena, 1, &plan));
  TS_TRY(ts_top_k_plan_make(operand->dtype, operand->shape, op->attrs->top_k.k, plan));
  out->state = plan;
  out->varies = true;
  out->cost_ns = plan->cost_ns;
  out->workspace = plan->workspace;
  out->thread_workspace = plan->thread_workspace;
  return TS_SUCCESS;
}

static ts_status top_k_run(const ts_routine_plan *plan, const ts_routine_run *run) {
  ts_sort_resources resources = resources_of(run);
  return ts_top_k_run(plan->state, &resources, ts_routine_operand(run, 0), ts_routine_result(run, 0),
                      ts_routine_result(run, 1));
}

const ts_routine ts_top_k_routine = {"top_k", top_k_plan, NULL, top_k_run, NULL};
