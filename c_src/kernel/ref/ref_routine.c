/* The interpreter as a routine: a program with only the op, run by kernel/ref/ref.c. */
#include "base/alloc.h"
#include "base/cancel.h"
#include "kernel/ref/ref.h"
#include "kernel/routine.h"

/* `map` has room for every value of `g`. */
static ts_status one_op_graph(const ts_graph *g, ts_op_id id, ts_value_id *map, ts_graph *out) {
  const ts_op *op = ts_graph_op(g, id);
  for (uint32_t i = 0; i < op->operand_count; i++) {
    const ts_value *v = ts_graph_value(g, op->operands[i]);
    TS_TRY(ts_graph_add_param(out, TS_ROOT, v->dtype, v->shape, &map[op->operands[i]]));
  }
  TS_TRY(ts_graph_copy_op(g, id, out, TS_ROOT, map));
  return ts_graph_set_results(out, TS_ROOT, &map[op->first_result], op->result_count);
}

static int64_t elements_of(const ts_graph *g, ts_value_id value) {
  return ts_shape_elements(ts_graph_value(g, value)->shape);
}

static int64_t reference_cost(const ts_graph *g, const ts_op *op) {
  int64_t elements = 0;
  for (uint32_t i = 0; i < op->result_count; i++) elements += elements_of(g, op->first_result + i);
  for (uint32_t i = 0; i < op->operand_count; i++) elements += elements_of(g, op->operands[i]);
  return 1000 + 100 * elements;
}

static ts_status reference_plan(const ts_routine_request *request, ts_routine_plan *out) {
  ts_value_id *map;
  ts_graph *graph;
  TS_TRY(ts_graph_create(&graph));
  out->state = graph;
  out->cost_ns = reference_cost(request->graph, ts_graph_op(request->graph, request->op));
  TS_TRY(TS_NEW_ARRAY(request->graph->values.count, &map));
  ts_status status = one_op_graph(request->graph, request->op, map, graph);
  ts_free(map);
  return status;
}

static ts_status wrap_operands(const ts_graph *graph, const ts_routine_run *run, ts_buffer **out) {
  const ts_region *root = ts_graph_region(graph, TS_ROOT);
  for (uint32_t i = 0; i < root->params.count; i++) {
    const ts_value *v = ts_graph_value(graph, root->params.data[i]);
    TS_TRY(ts_buffer_wrap(v->dtype, v->shape, run->base[run->operands[i]], NULL, NULL, &out[i]));
  }
  return TS_SUCCESS;
}

static void release_all(ts_buffer **buffers, size_t count) {
  for (size_t i = 0; i < count; i++) ts_buffer_release(buffers[i]);
}

static void copy_results(const ts_routine_run *run, ts_buffer *const *results, size_t count) {
  for (uint32_t i = 0; i < count; i++)
    ts_copy_bytes(ts_routine_result(run, i), results[i]->data, results[i]->bytes, run->cancel);
}

static ts_status reference_run(const ts_routine_plan *plan, const ts_routine_run *run) {
  const ts_graph *graph = plan->state;
  const ts_region *root = ts_graph_region(graph, TS_ROOT);
  size_t params = root->params.count, count = root->results.count;
  ts_buffer **buffers;
  TS_TRY(TS_NEW_ARRAY(params + count, &buffers));
  ts_status status = wrap_operands(graph, run, buffers);
  if (!status) status = ts_ref_run_until(graph, buffers, params, run->pool, run->cancel, buffers + params);
  if (!status) copy_results(run, buffers + params, count);
  release_all(buffers, params + count);
  ts_free(buffers);
  return status;
}

static void reference_deinit(ts_routine_plan *plan) { ts_graph_destroy(plan->state); }

const ts_routine ts_reference_routine = {"reference", reference_plan, NULL, reference_run, reference_deinit};
