/* Makes the program of one partition: ops on parts, with the assignment of mesh axes that moves the fewest bytes. */
#include "base/cancel.h"
#include "pass/pass.h"
#include "pass/rewrite.h"
#include "shard/partitioner.h"

#include <string.h>

/* ---- ops with a rule ---- */

void ts_part_reduced_axes(const ts_factors *f, const ts_assignment *a, ts_dims *out) {
  out->rank = 0;
  for (int32_t i = 0; i < f->count; i++)
    for (int32_t k = 0; (f->reduced >> i & 1) && k < a->factors[i].count; k++) {
      int32_t at = out->rank++;
      for (; at > 0 && out->dims[at - 1] > a->factors[i].axes[k]; at--) out->dims[at] = out->dims[at - 1];
      out->dims[at] = a->factors[i].axes[k];
    }
}

static bool is_moved(const ts_factors *f, const ts_assignment *a) {
  for (int32_t i = 0; i < f->count; i++)
    if (f->moved >> i & 1 && a->factors[i].count > 0) return true;
  return false;
}

/* Bytes that resharding a result to the sharding that propagation chose moves. */
static int64_t result_cost(const ts_partitioner *p, const ts_factors *f, const ts_assignment *a, const ts_dims *reduced,
                           ts_value_id id, int32_t tensor) {
  const ts_value *v = ts_graph_value(p->in, id);
  ts_sharding sharding;
  ts_assignment_sharding(f, a, tensor, &sharding);
  if (reduced->rank == 0 || f->reduction == TS_OP_ALL_REDUCE_SUM)
    return ts_part_cost(p, &sharding, ts_dims_mask(reduced), p->shardings->of[id], v);
  ts_shape part;
  ts_sharding_part(ts_part_mesh(p), &sharding, v->shape, &part);
  return 2 * ts_shape_bytes(&part, v->dtype) + ts_part_cost(p, &sharding, 0, p->shardings->of[id], v);
}

/* Bytes that an assignment moves: of operands, of neighbours' elements, of partial results, and of results to where
 * they are wanted. */
static int64_t assignment_cost(const ts_partitioner *p, const ts_op *op, const ts_factors *f, const ts_assignment *a) {
  ts_sharding sharding;
  ts_dims reduced;
  int64_t cost = is_moved(f, a) ? ts_split_moved_cost(p, op, f, a) : 0;
  for (uint32_t i = 0; i < op->operand_count; i++) {
    ts_assignment_sharding(f, a, (int32_t)i, &sharding);
    cost += ts_part_get_cost(p, op->operands[i], &sharding);
  }
  ts_part_reduced_axes(f, a, &reduced);
  for (uint32_t i = 0; i < op->result_count; i++)
    cost += result_cost(p, f, a, &reduced, op->first_result + i, (int32_t)(op->operand_count + i));
  return cost;
}

/* The cheapest assignment that was tried. */
typedef struct choice {
  const ts_partitioner *p;
  const ts_op *op;
  const ts_factors *f;
  int64_t least;
  ts_assignment *best;
} choice;

static void try_assignment(choice *c, const ts_assignment *a) {
  int64_t cost = assignment_cost(c->p, c->op, c->f, a);
  if (cost >= c->least) return;
  c->least = cost;
  *c->best = *a;
}

/* An assignment, and the same with its moved dims whole. */
static void try_both(choice *c, ts_assignment *a) {
  try_assignment(c, a);
  if (c->least == 0 || !is_moved(c->f, a)) return;
  for (int32_t i = 0; i < c->f->count; i++)
    if (c->f->moved >> i & 1) a->factors[i].count = 0;
  try_assignment(c, a);
}

static void choose(const ts_partitioner *p, const ts_op *op, const ts_factors *f, ts_assignment *out) {
  const ts_sharding *tensors[TS_FACTOR_TENSORS];
  choice c = {p, op, f, INT64_MAX, out};
  for (int32_t i = 0; i < f->count; i++) out->factors[i].count = 0; /* replicated, unless an assignment costs less */
  for (int32_t t = 0; t < f->tensors; t++)
    tensors[t] = t < f->operands ? p->of[op->operands[t]]->sharding
                                 : p->shardings->of[op->first_result + (uint32_t)(t - f->operands)];
  for (int32_t first = -1; first < f->tensors && c.least > 0; first++) {
    ts_assignment candidate;
    ts_assignment_join(ts_part_mesh(p), f, tensors, first, &candidate);
    try_both(&c, &candidate);
  }
}

/* Converts operands to the type in which partial results are summed. */
static ts_status widen(ts_partitioner *p, const ts_op *op, ts_value_id *operands) {
  for (size_t i = 0; i < op->operand_count; i++) {
    ts_dtype dtype = ts_graph_value(p->to, operands[i])->dtype;
    if (ts_dtype_is_float(dtype))
      TS_TRY(ts_graph_convert(p->to, p->scope->region, operands[i], ts_dtype_accumulator(dtype), &operands[i]));
  }
  return TS_SUCCESS;
}

/* An op with a region, whose attributes do not depend on the parts. */
static ts_status copy_split(ts_partitioner *p, const ts_op *op, const ts_value_id *operands, ts_value_id *out) {
  ts_op_id id = ts_graph_value(p->in, op->first_result)->op;
  for (uint32_t i = 0; i < op->operand_count; i++) p->map[op->operands[i]] = operands[i];
  TS_TRY(ts_graph_copy_op(p->in, id, p->to, p->scope->region, p->map));
  *out = p->map[op->first_result];
  return TS_SUCCESS;
}

ts_status ts_part_add_split(ts_partitioner *p, const ts_op *op, const ts_factors *f, const ts_assignment *a,
                            ts_value_id *operands, ts_value_id *out) {
  ts_attrs attrs;
  ts_sharding sharding;
  ts_shape part;
  if (is_moved(f, a)) return ts_split_moved(&(ts_split){p, op, f, a, operands}, out);
  if (ts_op_has_regions(op->code)) return copy_split(p, op, operands, out);
  if (!op->attrs) return ts_part_add(p, op->code, operands, op->operand_count, NULL, out);
  attrs = ts_op_copy_attrs(op);
  ts_assignment_sharding(f, a, f->operands, &sharding);
  ts_sharding_part(ts_part_mesh(p), &sharding, f->shapes[f->operands], &part);
  ts_factors_localize(op, f->shapes[f->operands], &part, &attrs);
  return ts_part_add(p, op->code, operands, op->operand_count, &attrs, out);
}

/* Makes a partial result whole. */
static ts_status reduce_result(ts_partitioner *p, const ts_factors *f, const ts_dims *reduced, ts_dtype dtype,
                               ts_value_id *value) {
  ts_attrs attrs;
  ts_shape_copy(&attrs.axes, reduced);
  TS_TRY(ts_part_add(p, f->reduction, value, 1, &attrs, value));
  return ts_graph_convert(p->to, p->scope->region, *value, dtype, value);
}

static ts_status finish_result(ts_partitioner *p, const ts_op *op, const ts_factors *f, const ts_assignment *a,
                               uint32_t result, ts_value_id value) {
  ts_value_id id = op->first_result + result;
  ts_dtype dtype = ts_graph_value(p->in, id)->dtype;
  ts_dims reduced;
  ts_sharding sharding;
  ts_part_reduced_axes(f, a, &reduced);
  ts_assignment_sharding(f, a, f->operands + (int32_t)result, &sharding);
  if (reduced.rank > 0 && f->wide && !ts_dtype_is_integer(dtype) && p->report)
    TS_TRY(TS_VEC_PUSH(&p->report->split, ((ts_reported_op){op->code, op->first_result, 0, 0})));
  if (reduced.rank > 0 && ts_part_may_wait(p->in, op, f, result))
    return ts_part_add_variant(p, id, &sharding, ts_dims_mask(&reduced), value);
  if (reduced.rank > 0) TS_TRY(reduce_result(p, f, &reduced, dtype, &value));
  return ts_part_add_variant(p, id, &sharding, 0, value);
}

static ts_status get_operands(ts_partitioner *p, const ts_op *op, const ts_factors *f, const ts_assignment *a,
                              ts_value_id *out) {
  for (uint32_t i = 0; i < op->operand_count; i++) {
    ts_sharding sharding;
    ts_assignment_sharding(f, a, (int32_t)i, &sharding);
    TS_TRY(ts_part_get(p, op->operands[i], &sharding, &out[i]));
  }
  return TS_SUCCESS;
}

/* The first dim that each operand is cut by and that no factor of the rule has. */
static ts_status report_gathered(ts_partitioner *p, const ts_op *op, const ts_factors *f) {
  for (int32_t i = 0; p->report && i < f->operands; i++) {
    const ts_sharding *sharding = p->of[op->operands[i]]->sharding;
    for (int32_t k = 0; k < sharding->count; k++) {
      int32_t dim = sharding->cuts[k].dim;
      if (f->of[i][dim] >= 0 || ts_part_mesh(p)->sizes[sharding->cuts[k].axis] == 1) continue;
      TS_TRY(TS_VEC_PUSH(&p->report->gathered, ((ts_reported_op){op->code, op->first_result, i, dim})));
      break;
    }
  }
  return TS_SUCCESS;
}

static ts_status split_op(ts_partitioner *p, const ts_op *op, const ts_factors *f) {
  ts_value_id operands[TS_FACTOR_TENSORS], first;
  ts_assignment a;
  ts_dims reduced;
  choose(p, op, f, &a);
  ts_part_reduced_axes(f, &a, &reduced);
  TS_TRY(report_gathered(p, op, f));
  TS_TRY(get_operands(p, op, f, &a, operands));
  if (reduced.rank > 0 && f->wide) TS_TRY(widen(p, op, operands));
  TS_TRY(ts_part_add_split(p, op, f, &a, operands, &first));
  for (uint32_t i = 0; i < op->result_count; i++) TS_TRY(finish_result(p, op, f, &a, i, first + i));
  return TS_SUCCESS;
}

/* On terms of sums where that is cheaper. */
static ts_status split(ts_partitioner *p, const ts_op *op, const ts_factors *f) {
  bool done;
  TS_TRY(ts_part_on_terms(p, op, f, &done));
  return done ? TS_SUCCESS : split_op(p, op, f);
}

/* A constraint is its operand, cut like that. */
static ts_status constrain(ts_partitioner *p, const ts_op *op) {
  ts_value_id value;
  const ts_sharding *sharding = p->shardings->of[op->first_result];
  TS_TRY(ts_part_get(p, op->operands[0], sharding, &value));
  return ts_part_add_variant(p, op->first_result, sharding, 0, value);
}

/* ---- ops without a rule ---- */

static bool has_shardings(const ts_partitioner *p, const ts_op *op) {
  for (uint32_t i = 0; i < op->operand_count; i++)
    if (p->of[op->operands[i]]->sharding->count > 0) return true;
  return false;
}

static ts_status replicate(ts_partitioner *p, ts_op_id id, const ts_op *op) {
  ts_value_id *map = p->map;
  if (p->report && has_shardings(p, op))
    TS_TRY(TS_VEC_PUSH(&p->report->replicated, ((ts_reported_op){op->code, op->first_result, 0, 0})));
  for (uint32_t i = 0; i < op->operand_count; i++)
    TS_TRY(ts_part_get(p, op->operands[i], p->shardings->whole, &map[op->operands[i]]));
  TS_TRY(ts_graph_copy_op(p->in, id, p->to, p->scope->region, map));
  for (uint32_t i = 0; i < op->result_count; i++)
    TS_TRY(ts_part_add_variant(p, op->first_result + i, p->shardings->whole, 0, map[op->first_result + i]));
  return TS_SUCCESS;
}

static ts_status check_op(const ts_partitioner *p, const ts_op *op) {
  if (!ts_graph_has_effect(p->in, op)) return TS_SUCCESS;
  return ts_error(TS_INVALID_ARGUMENT, "collectives and callbacks cannot be partitioned");
}

/* ---- the report ---- */

/* How a value was made, when it is not whole in each partition. */
static void report_value(const ts_partitioner *p, ts_value_id id, const char *what) {
  const ts_value *v = ts_graph_value(p->in, id);
  const ts_variant *made = p->of[id];
  ts_dims axes;
  if (!p->report || !made || (made->sharding->count == 0 && made->partial == 0)) return;
  ts_text *out = &p->report->values;
  ts_text_format(out, "%%%u = %s: %s sharded ", id, what, TS_SHAPE_STR(v->dtype, v->shape));
  ts_sharding_print(made->sharding, v->shape->rank, out);
  ts_part_axes(made->partial, &axes);
  for (int32_t i = 0; i < axes.rank; i++) ts_text_format(out, i ? ",%d" : ", terms over %d", (int)axes.dims[i]);
  ts_text_append(out, "\n");
}

static void report_results(const ts_partitioner *p, const ts_op *op) {
  for (uint32_t i = 0; i < op->result_count; i++) report_value(p, op->first_result + i, ts_op_name(op->code));
}

/* ---- regions ---- */

ts_status ts_part_visit(ts_partitioner *p, ts_op_id id) {
  const ts_op *op = ts_graph_op(p->in, id);
  TS_TRY(check_op(p, op));
  if (op->code == TS_OP_SHARDING_CONSTRAINT) return constrain(p, op);
  if (ts_shardings_are_inside(p->in, op)) return op->code == TS_OP_CALL ? ts_part_call(p, op) : ts_part_control(p, op);
  const ts_factors *f = ts_shardings_rule(p->shardings, id);
  return f ? split(p, op, f) : replicate(p, id, op);
}

static bool is_live(const ts_op *op, const uint32_t *uses) {
  for (uint32_t i = 0; i < op->result_count; i++)
    if (uses[op->first_result + i]) return true;
  return false;
}

ts_status ts_part_visit_ops(ts_partitioner *p, ts_region_id id) {
  const ts_region *region = ts_graph_region(p->in, id);
  ts_place outer = p->to->place;
  ts_deferral_find(p, id);
  for (size_t i = 0; i < region->ops.count; i++) {
    const ts_op *op = ts_graph_op(p->in, region->ops.data[i]);
    TS_TRY(ts_check_cancelled(p->cancel, "the compile"));
    if (!is_live(op, p->uses) && !ts_graph_has_effect(p->in, op)) continue;
    p->to->place = op->place;
    TS_TRY(ts_error_context(ts_part_visit(p, region->ops.data[i]), "%s", ts_op_name(op->code)));
    report_results(p, op);
  }
  p->to->place = outer;
  return TS_SUCCESS;
}

/* ---- the program ---- */

static ts_status add_params(ts_partitioner *p) {
  const ts_region *root = ts_graph_region(p->in, TS_ROOT);
  for (size_t i = 0; i < root->params.count; i++) {
    ts_value_id id = root->params.data[i], made;
    const ts_value *v = ts_graph_value(p->in, id);
    ts_shape part;
    ts_sharding_part(ts_part_mesh(p), p->shardings->of[id], v->shape, &part);
    TS_TRY(ts_graph_add_param(p->to, TS_ROOT, v->dtype, &part, &made));
    TS_TRY(ts_part_add_variant(p, id, p->shardings->of[id], 0, made));
    TS_TRY(ts_graph_set_sharding(p->to, TS_PARAMS, i, p->shardings->of[id]));
    report_value(p, id, "argument");
  }
  return TS_SUCCESS;
}

static ts_status set_results(ts_partitioner *p) {
  const ts_region *root = ts_graph_region(p->in, TS_ROOT);
  ts_value_id *results;
  ts_status status = TS_SUCCESS;
  TS_TRY(TS_NEW_ARRAY(root->results.count, &results));
  for (size_t i = 0; !status && i < root->results.count; i++) {
    const ts_sharding *given = ts_graph_sharding(p->in, TS_RESULTS, i);
    const ts_sharding *sharding = given ? given : p->shardings->of[root->results.data[i]];
    status = ts_part_get(p, root->results.data[i], sharding, &results[i]);
    if (!status) status = ts_graph_set_sharding(p->to, TS_RESULTS, i, sharding);
  }
  if (!status) status = ts_graph_set_results(p->to, TS_ROOT, results, root->results.count);
  ts_free(results);
  return status;
}

static ts_status build(ts_partitioner *p) {
  uint32_t *uses = NULL;
  TS_TRY(TS_NEW_ARRAY(p->in->values.count, &p->of));
  TS_TRY(TS_NEW_ARRAY(p->in->values.count, &p->map));
  TS_TRY(ts_deferral_create(p->in->values.count, &p->deferral));
  TS_TRY(ts_graph_create(&p->to));
  TS_TRY(ts_graph_set_name(p->to, p->in->name));
  ts_graph_share_places(p->to, p->in);
  p->to->mesh = p->in->mesh;
  p->to->mesh.partitioned = true;
  TS_TRY(add_params(p));
  TS_TRY(ts_liveness_count(p->in, &uses));
  p->uses = uses;
  ts_status status = ts_part_visit_ops(p, TS_ROOT);
  ts_free(uses);
  return status ? status : set_results(p);
}

static ts_status check_input(const ts_graph *in) {
  if (in->mesh.rank == 0) return ts_error(TS_INVALID_ARGUMENT, "partition: the program has no mesh");
  if (in->mesh.partitioned || in->mesh.coordinates)
    return ts_error(TS_INVALID_ARGUMENT, "partition: the program is partitioned already");
  return TS_SUCCESS;
}

ts_status ts_shard_partition(const ts_graph *in, const _Atomic bool *cancel, ts_shard_report *report, ts_graph **out) {
  ts_shardings shardings;
  *out = NULL;
  TS_TRY(check_input(in));
  TS_TRY(ts_shardings_find(in, cancel, &shardings));
  ts_scope root;
  ts_scope_init(&root, TS_ROOT);
  ts_partitioner p = {.in = in, .shardings = &shardings, .scope = &root, .cancel = cancel, .report = report};
  ts_status status = build(&p);
  if (!status) status = ts_shard_combine(p.to, out);
  ts_graph_destroy(p.to);
  ts_deferral_free(&p.deferral);
  ts_free(p.of);
  ts_free(p.map);
  ts_shardings_deinit(&shardings);
  return status;
}
