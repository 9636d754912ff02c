/* One walk for all rewrites that depend only on an op and its operands. A call is replaced by the ops of its region, a
 * cond with a known predicate by the branch that it takes, a general reduce by a loop; then the rules are applied. The
 * passes named after one kind of rewrite are for tests and tessera-opt. */
#include "pass/normalize.h"

#include "base/cancel.h"

enum { INLINE = 8, BRANCHES = 16, EXPAND = 32, DOTS = 64, EXPAND_ORDERED = 512 };

typedef struct normalizer {
  ts_rules rules;
  unsigned visits;
} normalizer;

/* Replaces the op that holds a region by the region's ops. */
static ts_status inline_region(ts_rewrite *rw, ts_op_id id, ts_region_id held, uint32_t first_argument,
                               ts_region_id target) {
  const ts_op *op = ts_graph_op(rw->from, id);
  const ts_region *region = ts_graph_region(rw->from, held);
  for (size_t i = 0; i < region->params.count; i++)
    rw->map[region->params.data[i]] = rw->map[op->operands[first_argument + i]];
  for (size_t i = 0; i < region->ops.count; i++) TS_TRY(ts_rewrite_visit(rw, region->ops.data[i], target));
  for (uint32_t i = 0; i < op->result_count; i++) rw->map[op->first_result + i] = rw->map[region->results.data[i]];
  return TS_SUCCESS;
}

static ts_status visit_control(ts_rewrite *rw, ts_op_id id, ts_region_id target, bool *out_done) {
  const normalizer *n = rw->context;
  const ts_op *op = ts_graph_op(rw->from, id);
  ts_scalar known;
  *out_done = true;
  if (op->code == TS_OP_CALL && (n->visits & INLINE))
    return inline_region(rw, id, op->attrs->regions.regions[0], 0, target);
  if (op->code == TS_OP_COND && (n->visits & BRANCHES) &&
      ts_graph_is_constant(rw->to, ts_rewrite_operand(rw, op, 0), &known))
    return inline_region(rw, id, op->attrs->regions.regions[known.bits != 0 ? 0 : 1], 1, target);
  *out_done = false;
  return TS_SUCCESS;
}

static ts_status visit_plain(ts_rewrite *rw, ts_op_id id, ts_region_id target) {
  normalizer *n = rw->context;
  const ts_op *op = ts_graph_op(rw->from, id);
  ts_value_id few[TS_REWRITE_FEW], *operands;
  TS_TRY(ts_rewrite_operands(rw, op, few, &operands));
  ts_status status = ts_rules_copy(&n->rules, target, rw->from, id, operands, &rw->map[op->first_result]);
  if (operands != few) ts_free(operands);
  return status;
}

/* Alone a partition has no step for it. */
static bool is_zeros(const ts_graph *graph, const ts_op *op) {
  return ts_op_permutes_nothing(op) && ts_mesh_partitions(&graph->mesh) == 1;
}

static ts_status make_zeros(ts_rewrite *rw, const ts_op *op, ts_region_id target) {
  for (uint32_t i = 0; i < op->result_count; i++) {
    const ts_value *v = ts_graph_value(rw->from, op->first_result + i);
    TS_TRY(
        ts_graph_constant(rw->to, target, v->dtype, v->shape, (ts_scalar){.bits = 0}, &rw->map[op->first_result + i]));
  }
  return TS_SUCCESS;
}

static ts_status visit(ts_rewrite *rw, ts_op_id id, ts_region_id target) {
  normalizer *n = rw->context;
  const ts_op *op = ts_graph_op(rw->from, id);
  bool done = false;
  n->rules.to = rw->to;
  if ((n->visits & EXPAND) && is_zeros(rw->from, op)) return make_zeros(rw, op, target);
  if ((n->visits & INLINE) && ts_op_is_identity(rw->from, op)) {
    for (uint32_t i = 0; i < op->result_count; i++) rw->map[op->first_result + i] = rw->map[op->operands[i]];
    return TS_SUCCESS;
  }
  if (!ts_op_has_regions(op->code) && !(n->visits & DOTS)) return visit_plain(rw, id, target);
  if (ts_op_get_class(op->code) == TS_CLASS_CONTROL) TS_TRY(visit_control(rw, id, target, &done));
  if (op->code == TS_OP_REDUCE && (n->visits & (EXPAND | EXPAND_ORDERED)))
    return ts_expand_visit(rw, &n->rules, !(n->visits & EXPAND), id, target);
  if ((op->code == TS_OP_DOT || op->code == TS_OP_TRANSPOSE) && (n->visits & DOTS))
    TS_TRY(ts_dots_visit(rw, &n->rules, id, target, &done));
  if (op->code == TS_OP_TOP_K && (n->visits & DOTS)) TS_TRY(ts_order_visit(rw, &n->rules, id, target, &done));
  if (done) return TS_SUCCESS;
  return ts_op_has_regions(op->code) ? ts_rewrite_copy(rw, id, target) : visit_plain(rw, id, target);
}

static ts_status run(const ts_graph *in, const ts_pass_options *options, unsigned visits, const uint32_t *uses,
                     ts_graph **out) {
  normalizer n = {.rules = {.options = options, .sets = visits, .expected = in->ops.count}, .visits = visits};
  ts_rewrite rw = {.visit = visit, .uses = uses, .context = &n};
  ts_status status = ts_rewrite_run(&rw, in, options, out);
  ts_rules_deinit(&n.rules);
  return status;
}

enum { RULES = TS_RULES_WIDEN | TS_RULES_SIMPLIFY | TS_RULES_FOLD | TS_RULES_SHARE };

ts_status ts_pass_normalize(const ts_graph *in, const ts_pass_options *options, ts_graph **out) {
  return run(in, options, INLINE | BRANCHES | EXPAND | RULES, NULL, out);
}

static ts_status probe(ts_rules *rules, const ts_region *region) {
  for (size_t i = 0; i < region->ops.count && !rules->changes; i++) {
    TS_TRY(ts_check_cancelled(rules->options->cancel, "the compile"));
    TS_TRY(ts_rules_probe(rules, region->ops.data[i]));
  }
  return TS_SUCCESS;
}

enum { SHORT = 400 /* ops; longer programs almost always change, so that filling a large table would be wasted */ };

/* Graphs with nested regions or a mesh are always normalized. */
ts_status ts_normalize_applies(const ts_graph *graph, const ts_pass_options *options, bool *out) {
  ts_rules rules = {.to = (ts_graph *)(uintptr_t)graph,
                    .options = options,
                    .sets = RULES,
                    .expected = graph->ops.count <= SHORT ? graph->ops.count : 0,
                    .probing = true};
  *out = true;
  if (graph->regions.count > 1 || graph->mesh.rank > 0) return TS_SUCCESS;
  ts_status status = probe(&rules, ts_graph_region(graph, TS_ROOT));
  *out = rules.changes;
  ts_rules_deinit(&rules);
  return status;
}

/* Leaves out dead ops, so that the use counts show a product that only a transpose reads, and results that nothing
 * reads. */
ts_status ts_pass_dots(const ts_graph *in, const ts_pass_options *options, ts_graph **out) {
  uint32_t *uses;
  *out = NULL;
  TS_TRY(ts_liveness_count(in, &uses));
  ts_status status = run(in, options, DOTS | TS_RULES_SIMPLIFY | TS_RULES_SHARE, uses, out);
  ts_free(uses);
  return status;
}

ts_status ts_pass_inline(const ts_graph *in, const ts_pass_options *options, ts_graph **out) {
  return run(in, options, INLINE, NULL, out);
}

ts_status ts_pass_widen(const ts_graph *in, const ts_pass_options *options, ts_graph **out) {
  return run(in, options, TS_RULES_WIDEN, NULL, out);
}

ts_status ts_pass_guard(const ts_graph *in, const ts_pass_options *options, ts_graph **out) {
  return run(in, options, TS_RULES_GUARD | EXPAND_ORDERED, NULL, out);
}

ts_status ts_pass_simplify(const ts_graph *in, const ts_pass_options *options, ts_graph **out) {
  return run(in, options, BRANCHES | TS_RULES_SIMPLIFY, NULL, out);
}

ts_status ts_pass_expand(const ts_graph *in, const ts_pass_options *options, ts_graph **out) {
  return run(in, options, EXPAND | TS_RULES_WIDEN, NULL, out);
}

ts_status ts_pass_fold(const ts_graph *in, const ts_pass_options *options, ts_graph **out) {
  return run(in, options, TS_RULES_FOLD, NULL, out);
}

ts_status ts_pass_cse(const ts_graph *in, const ts_pass_options *options, ts_graph **out) {
  return run(in, options, TS_RULES_SHARE, NULL, out);
}
