#include "pass/rewrite.h"

#include "base/cancel.h"
#include "base/deep.h"

static ts_status set_results(ts_rewrite *rw, ts_region_id source, ts_region_id target) {
  const ts_region *region = ts_graph_region(rw->from, source);
  ts_value_id *results;
  TS_TRY(TS_NEW_ARRAY(region->results.count, &results));
  for (size_t i = 0; i < region->results.count; i++) results[i] = rw->map[region->results.data[i]];
  ts_status status = ts_graph_set_results(rw->to, target, results, region->results.count);
  ts_free(results);
  return status;
}

static bool is_live(const ts_rewrite *rw, const ts_op *op) {
  for (uint32_t i = 0; i < op->result_count; i++) {
    if (rw->uses[op->first_result + i]) return true;
  }
  return ts_graph_has_effect(rw->from, op);
}

static ts_status visit_ops(ts_rewrite *rw, ts_region_id source, ts_region_id target) {
  const ts_region *region = ts_graph_region(rw->from, source);
  for (size_t i = 0; i < region->ops.count; i++) {
    ts_op_id op = region->ops.data[i];
    TS_TRY(ts_check_cancelled(rw->options->cancel, "the compile"));
    if (!rw->uses || is_live(rw, ts_graph_op(rw->from, op))) TS_TRY(ts_rewrite_visit(rw, op, target));
  }
  return TS_SUCCESS;
}

static ts_status fill_region(ts_rewrite *rw, ts_region_id source, ts_region_id target) {
  const ts_region *region = ts_graph_region(rw->from, source);
  TS_TRY(ts_graph_reserve_region(rw->to, target, region->params.count, region->ops.count));
  TS_TRY(ts_graph_add_params_like(rw->to, target, rw->from, source, rw->map));
  if (rw->enter) TS_TRY(rw->enter(rw, source, target));
  TS_TRY(visit_ops(rw, source, target));
  return set_results(rw, source, target);
}

/* Recursion is bounded by TS_MAX_LEVELS. */
ts_status ts_rewrite_region(ts_rewrite *rw, ts_region_id source, ts_region_id *out) {
  TS_TRY(ts_graph_add_region(rw->to, out));
  return fill_region(rw, source, *out);
}

static ts_status copy_with_regions(ts_rewrite *rw, const ts_op *op, const ts_value_id *operands, ts_region_id target,
                                   ts_value_id *out) {
  ts_region_id regions[2], copies[2] = {TS_NO_ID, TS_NO_ID};
  size_t count = ts_op_regions(op, regions);
  ts_attrs attrs = ts_op_copy_attrs(op);
  for (size_t i = 0; i < count; i++) TS_TRY(ts_rewrite_region(rw, regions[i], &copies[i]));
  ts_attrs_set_regions(op->code, &attrs, copies);
  return ts_graph_add_op(rw->to, target, op->code, (ts_values){operands, op->operand_count}, &attrs, out);
}

ts_status ts_rewrite_copy(ts_rewrite *rw, ts_op_id id, ts_region_id target) {
  const ts_op *op = ts_graph_op(rw->from, id);
  ts_value_id few[TS_REWRITE_FEW], *operands, first;
  TS_TRY(ts_rewrite_operands(rw, op, few, &operands));
  ts_status status = ts_op_has_regions(op->code) ? copy_with_regions(rw, op, operands, target, &first)
                                                 : ts_graph_add_like(rw->to, target, rw->from, id, operands, &first);
  if (operands != few) ts_free(operands);
  if (status) return status;
  for (uint32_t i = 0; i < op->result_count; i++) rw->map[op->first_result + i] = first + i;
  return TS_SUCCESS;
}

static ts_status fill_root(void *context) { return fill_region(context, TS_ROOT, TS_ROOT); }

ts_status ts_rewrite_run(ts_rewrite *rw, const ts_graph *in, const ts_pass_options *options, ts_graph **out) {
  rw->from = in;
  rw->options = options;
  rw->to = NULL;
  rw->map = NULL;
  ts_status status = ts_graph_create_from(in, &rw->to);
  if (!status) status = ts_graph_set_name(rw->to, in->name);
  if (!status) status = ts_graph_reserve(rw->to, in->values.count, in->ops.count);
  if (!status) status = TS_NEW_ARRAY(in->values.count, &rw->map);
  if (!status) status = ts_deep_call(ts_graph_region(in, TS_ROOT)->height, fill_root, rw);
  ts_free(rw->map);
  if (status) {
    ts_graph_destroy(rw->to);
    rw->to = NULL;
  }
  *out = rw->to;
  return status;
}
