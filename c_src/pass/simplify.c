#include "pass/simplify.h"

/* The ops of the branch that is taken stand in for a cond whose predicate is known. */
static ts_status take_branch(ts_rewrite *rw, ts_op_id id, ts_region_id target, bool truth) {
  const ts_op *op = ts_graph_op(rw->from, id);
  const ts_region *region = ts_graph_region(rw->from, op->attrs->regions.regions[truth ? 0 : 1]);
  for (size_t i = 0; i < region->params.count; i++) rw->map[region->params.data[i]] = rw->map[op->operands[1 + i]];
  for (size_t i = 0; i < region->ops.count; i++) TS_TRY(rw->visit(rw, region->ops.data[i], target));
  for (uint32_t i = 0; i < op->result_count; i++) rw->map[op->first_result + i] = rw->map[region->results.data[i]];
  return TS_SUCCESS;
}

static ts_status apply_rules(ts_simplify *s, ts_value_id *out) {
  switch (ts_op_get_class(s->op->code)) {
  case TS_CLASS_SHAPE: return ts_simplify_shape(s, out);
  case TS_CLASS_INDEXED: return ts_simplify_indexed(s, out);
  default: return ts_op_is_elementwise(s->op->code) ? ts_simplify_arithmetic(s, out) : TS_SUCCESS;
  }
}

static ts_status visit(ts_rewrite *rw, ts_op_id id, ts_region_id target) {
  const ts_op *op = ts_graph_op(rw->from, id);
  ts_simplify s = {.rw = rw, .op = op, .target = target};
  ts_value_id out = TS_NO_ID;
  ts_scalar known;
  if (op->code == TS_OP_COND && ts_graph_is_constant(rw->to, ts_rewrite_operand(rw, op, 0), &known))
    return take_branch(rw, id, target, known.bits != 0);
  if (op->operand_count == 0 || op->result_count != 1) return ts_rewrite_copy(rw, id, target);
  const ts_value *result = ts_graph_value(rw->from, op->first_result);
  s.dtype = result->dtype;
  s.shape = result->shape;
  for (uint32_t i = 0; i < op->operand_count && i < 3; i++) s.operands[i] = ts_rewrite_operand(rw, op, i);
  TS_TRY(apply_rules(&s, &out));
  return out == TS_NO_ID ? ts_rewrite_copy(rw, id, target) : ts_rewrite_set(rw, id, out);
}

ts_status ts_pass_simplify(const ts_graph *in, const ts_pass_options *options, ts_graph **out) {
  ts_rewrite rw = {.visit = visit};
  return ts_rewrite_run(&rw, in, options, out);
}
