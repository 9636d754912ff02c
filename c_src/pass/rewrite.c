#include "pass/rewrite.h"

static ts_status copy_params(ts_rewrite *rw, ts_region_id source, ts_region_id target) {
  const ts_region *region = ts_graph_region(rw->from, source);
  for (size_t i = 0; i < region->params.count; i++) {
    const ts_value *param = ts_graph_value(rw->from, region->params.data[i]);
    TS_TRY(ts_graph_add_param(rw->to, target, param->dtype, &param->shape, &rw->map[region->params.data[i]]));
  }
  return TS_SUCCESS;
}

static ts_status set_results(ts_rewrite *rw, ts_region_id source, ts_region_id target) {
  const ts_region *region = ts_graph_region(rw->from, source);
  ts_value_id *results;
  TS_TRY(TS_NEW_ARRAY(region->results.count, &results));
  for (size_t i = 0; i < region->results.count; i++) results[i] = rw->map[region->results.data[i]];
  ts_status status = ts_graph_set_results(rw->to, target, results, region->results.count);
  ts_free(results);
  return status;
}

static ts_status visit_ops(ts_rewrite *rw, ts_region_id source, ts_region_id target) {
  const ts_region *region = ts_graph_region(rw->from, source);
  for (size_t i = 0; i < region->ops.count; i++) TS_TRY(rw->visit(rw, region->ops.data[i], target));
  return TS_SUCCESS;
}

static ts_status fill_region(ts_rewrite *rw, ts_region_id source, ts_region_id target) {
  TS_TRY(copy_params(rw, source, target));
  if (rw->enter) TS_TRY(rw->enter(rw, source, target));
  ts_status status = visit_ops(rw, source, target);
  if (!status) status = set_results(rw, source, target);
  if (rw->leave) rw->leave(rw, source);
  return status;
}

/* Recursion is bounded by TS_MAX_NESTING. */
ts_status ts_rewrite_region(ts_rewrite *rw, ts_region_id source, ts_region_id *out) {
  TS_TRY(ts_graph_add_region(rw->to, out));
  return fill_region(rw, source, *out);
}

ts_status ts_rewrite_copy(ts_rewrite *rw, ts_op_id id, ts_region_id target) {
  const ts_op *op = ts_graph_op(rw->from, id);
  ts_region_id regions[2], copies[2] = {TS_NO_ID, TS_NO_ID};
  size_t count = ts_op_regions(op, regions);
  ts_value_id few[8], *operands = few, first;
  ts_attrs attrs;
  if (count > 0) {
    attrs = *op->attrs;
    for (size_t i = 0; i < count; i++) TS_TRY(ts_rewrite_region(rw, regions[i], &copies[i]));
    ts_attrs_set_regions(op->code, &attrs, copies);
  }
  if (op->operand_count > 8) TS_TRY(TS_NEW_ARRAY(op->operand_count, &operands));
  for (uint32_t i = 0; i < op->operand_count; i++) operands[i] = rw->map[op->operands[i]];
  ts_status status =
      ts_graph_add_op(rw->to, target, op->code, operands, op->operand_count, count > 0 ? &attrs : op->attrs, &first);
  if (operands != few) ts_free(operands);
  if (status) return status;
  for (uint32_t i = 0; i < op->result_count; i++) rw->map[op->first_result + i] = first + i;
  return TS_SUCCESS;
}

ts_status ts_rewrite_run(ts_rewrite *rw, const ts_graph *in, const ts_pass_options *options, ts_graph **out) {
  rw->from = in;
  rw->options = options;
  rw->to = NULL;
  rw->map = NULL;
  ts_status status = ts_graph_create(&rw->to);
  if (!status) status = ts_graph_set_name(rw->to, in->name);
  if (!status) status = TS_NEW_ARRAY(in->values.count, &rw->map);
  if (!status) status = fill_region(rw, TS_ROOT, TS_ROOT);
  ts_free(rw->map);
  if (status) {
    ts_graph_destroy(rw->to);
    rw->to = NULL;
  }
  *out = rw->to;
  return status;
}
