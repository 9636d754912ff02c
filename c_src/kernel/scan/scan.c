/* A line is processed in order, so a single line is bound by the latency of its op. Many lines are processed together:
 * along an outer axis the inner elements of one index are adjacent in memory; along the last axis lines are
 * interleaved. Blocks of few long lines are handled like lines: first their totals are computed, then the total before
 * each block, then the results. Either way the order within each line, and so its bits, are the same. */
#include "kernel/scan/scan.h"

#include "jit/session/target.h"
#include "kernel/complex_number.h"
#include "kernel/routine.h"
#include "kernel/scan/scan_job.h"
#include "tensor/scan_order.h"

/* Elements of one task. */
#define TASK_ELEMENTS 65536

static const ts_scan_fns *fns_of(ts_dtype type, ts_combine kind) {
  return &(*TS_TARGET_PICK(ts_scan_table))[type][kind];
}

typedef struct scan_call {
  void (*fn)(const ts_scan_job *job, int64_t begin, int64_t end);
  ts_scan_job job;
  int64_t units;
} scan_call;

static void scan_task(void *arg, int64_t task, int worker) {
  (void)worker;
  const scan_call *call = arg;
  int64_t begin = task * call->job.per_task, end = begin + call->job.per_task;
  call->fn(&call->job, begin, end < call->units ? end : call->units);
}

static void run_tasks(scan_call *call, const ts_parallel *parallel) {
  call->job.tasks = ts_scan_ceil_div(call->units, call->job.per_task);
  ts_parallel_run(call->job.tasks == 1 ? &ts_parallel_serial : parallel, call->job.tasks, scan_task, call);
}

/* Fewer lines of a few inner elements would wait for each step. */
#define LEAST_LINES 4

/* Whole lines, many of them in one task. */
static void run_lines(scan_call *call, const ts_scan_fns *fns, const ts_parallel *parallel) {
  ts_scan_job *job = &call->job;
  const bool rows = job->inner <= fns->narrow && (job->inner == 1 || job->outer >= LEAST_LINES);
  call->fn = rows ? fns->lines : fns->panels;
  call->units = rows ? job->outer : job->outer * job->panels;
  job->per_task = TASK_ELEMENTS / (job->n * ts_scan_least(job->inner, TS_SCAN_PANEL));
  if (job->per_task < TS_SCAN_ROWS) job->per_task = rows ? TS_SCAN_ROWS : 1;
  if (rows) job->per_task -= job->per_task % TS_SCAN_ROWS;
  run_tasks(call, parallel);
}

/* Totals, except of the last block of a line, and results. */
static void run_blocks(scan_call *call, const ts_scan_fns *fns, const ts_parallel *parallel) {
  ts_scan_job *job = &call->job;
  const bool rows = job->inner == 1;
  call->fn = rows ? fns->line_blocks : fns->panel_blocks;
  call->units = job->outer * (rows ? ts_scan_ceil_div(job->blocks, TS_SCAN_BLOCKS) : job->blocks * job->panels);
  job->per_task = 1;
  job->totals = true;
  run_tasks(call, parallel);
  if (ts_scan_cancelled(job)) return;
  fns->combine(job);
  job->totals = false;
  run_tasks(call, parallel);
}

/* True for lines that are too few for the threads, or to hide the latency of each other. A step of keys is short, and
 * to make them twice takes longer than to wait. So few blocks of a line that one task has them all end no earlier than
 * one after the other, unless several lines keep many threads busy. */
static bool has_few_lines(const ts_scan_job *job, bool has_keys, int width) {
  const int64_t units = job->inner == 1 ? ts_scan_ceil_div(job->outer, TS_SCAN_ROWS) : job->outer * job->panels;
  const bool waits = job->inner == 1 && job->outer < 4 && !has_keys;
  const bool threads = width > 1 && units < 2 * (int64_t)width;
  const bool one_task = job->inner == 1 && job->blocks <= TS_SCAN_BLOCKS;
  if (job->blocks == 1 || (one_task && (width < LEAST_LINES || job->outer < LEAST_LINES))) return false;
  return (waits && !one_task) || threads;
}

static ts_scan_job make_job(const ts_shape *shape, int axis, bool reverse) {
  ts_scan_job job = {.outer = 1, .n = shape->dims[axis], .inner = 1, .step = reverse ? -1 : 1};
  for (int d = 0; d < axis; d++) job.outer *= shape->dims[d];
  for (int d = axis + 1; d < shape->rank; d++) job.inner *= shape->dims[d];
  if (job.n == 1) job.inner *= job.outer, job.outer = job.outer > 0; /* lines of one element are one panel */
  job.panels = ts_scan_ceil_div(job.inner, TS_SCAN_PANEL);
  job.blocks = ts_scan_ceil_div(job.n, TS_SCAN_BLOCK);
  return job;
}

int64_t ts_scan_workspace(const ts_scan *scan) {
  const ts_scan_job job = make_job(&scan->shape, scan->axis, scan->reverse);
  return job.blocks > 1 ? job.outer * job.blocks * job.inner * (int64_t)sizeof(ts_c128) : 0;
}

ts_status ts_scan_run(const ts_scan *scan, const ts_scan_call *c) {
  const ts_shape *shape = &scan->shape;
  const ts_opcode op = scan->op;
  const ts_dtype type = scan->dtype;
  const ts_combiner *by = ts_op_get_class(op) == TS_CLASS_SCAN ? ts_combiner_of(op) : NULL;
  const ts_scan_fns *fns = by && type < TS_DTYPE_COUNT ? fns_of(type, by->kind) : NULL;
  if (!fns || !fns->lines)
    return ts_error(TS_INVALID_ARGUMENT, "%s of %s is not a scan", ts_op_name(op), ts_dtype_name(type));
  if (scan->axis < 0 || scan->axis >= shape->rank)
    return ts_error(TS_INVALID_ARGUMENT, "%s: axis %d of %s", ts_op_name(op), scan->axis, TS_SHAPE_STR(type, shape));
  scan_call call = {.job = make_job(shape, scan->axis, scan->reverse)};
  call.job.in = c->in;
  call.job.out = c->out;
  call.job.carries = c->workspace;
  call.job.cancel = c->cancel;
  if (call.job.outer == 0 || call.job.n == 0 || call.job.inner == 0) return TS_SUCCESS;
  const bool has_keys = ts_dtype_is_float(type) && (by->kind == TS_COMBINE_MIN || by->kind == TS_COMBINE_MAX);
  if (c->workspace && has_few_lines(&call.job, has_keys, c->parallel->width))
    run_blocks(&call, fns, c->parallel);
  else
    run_lines(&call, fns, c->parallel);
  return ts_check_cancelled(c->cancel, ts_op_name(op));
}

/* ---- as a routine ---- */

static ts_status scan_plan(const ts_routine_request *request, ts_routine_plan *out) {
  static const bool in_place = true;
  const ts_op *op = ts_graph_op(request->graph, request->op);
  const ts_value *operand = ts_graph_value(request->graph, op->operands[0]);
  ts_scan *state;
  if (!fns_of(operand->dtype, ts_combiner_of(op->code)->kind)->lines) return TS_SUCCESS;
  TS_TRY(TS_ARENA_ARRAY(request->arena, 1, &state));
  *state = (ts_scan){op->code, operand->dtype, *operand->shape, op->attrs->scan.axis, op->attrs->scan.reverse};
  out->state = state;
  out->cost_ns = 100 + 2 * ts_shape_elements(&state->shape);
  out->inplace = &in_place;
  out->workspace = ts_scan_workspace(state);
  return TS_SUCCESS;
}

static ts_status scan_run(const ts_routine_plan *plan, const ts_routine_run *run) {
  return ts_scan_run(plan->state, &(ts_scan_call){ts_routine_operand(run, 0), ts_routine_result(run, 0), run->workspace,
                                                  run->parallel, run->cancel});
}

const ts_routine ts_scan_routine = {"scan", scan_plan, NULL, scan_run, NULL};
