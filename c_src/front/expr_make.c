/* Makes the program of an expression: each node becomes a copy of its rule's region. */
#include "front/expr.h"

typedef struct maker {
  const ts_expr *e;
  const ts_expr_rule *rules;
  ts_graph *graph;
  ts_value_id *made;         /* of each value of the expression; for a tuple its index in `parts` */
  TS_VEC(ts_value_id) parts; /* the values of tuples */
  ts_value_id *map;          /* by value of a rule's graph */
} maker;

enum { FEW = 8 };

static ts_status copy_op(maker *m, const ts_graph *from, ts_op_id id) {
  const ts_op *op = ts_graph_op(from, id);
  ts_value_id few[FEW], *operands = few;
  ts_region_id regions[2];
  if (ts_op_regions(op, regions)) return ts_graph_copy_op(from, id, m->graph, TS_ROOT, m->map);
  if (op->operand_count > FEW) TS_TRY(TS_NEW_ARRAY(op->operand_count, &operands));
  for (uint32_t i = 0; i < op->operand_count; i++) operands[i] = m->map[op->operands[i]];
  ts_value_id first = TS_NO_ID;
  ts_status status = ts_graph_add_like(m->graph, TS_ROOT, from, id, operands, &first);
  for (uint32_t i = 0; !status && i < op->result_count; i++) m->map[op->first_result + i] = first + i;
  if (operands != few) ts_free(operands);
  return status;
}

static ts_status make_results(maker *m, const ts_region *region, uint32_t value) {
  if (region->results.count == 1) {
    m->made[value] = m->map[region->results.data[0]];
    return TS_SUCCESS;
  }
  m->made[value] = (ts_value_id)m->parts.count;
  for (size_t i = 0; i < region->results.count; i++) TS_TRY(TS_VEC_PUSH(&m->parts, m->map[region->results.data[i]]));
  return TS_SUCCESS;
}

static ts_status make_value(maker *m, uint32_t value) {
  const ts_expr_value *v = &m->e->values.data[value];
  if (v->rule == TS_NO_ID) {
    m->made[value] = v->count == TS_NO_ID ? TS_NO_ID : ts_graph_region(m->graph, TS_ROOT)->params.data[v->count];
    return TS_SUCCESS;
  }
  if (v->rule == TS_EXPR_ELEM) {
    m->made[value] = m->parts.data[m->made[v->first] + v->count];
    return TS_SUCCESS;
  }
  const ts_expr_rule *rule = &m->rules[v->rule];
  const ts_region *region = ts_expr_region(rule);
  for (uint32_t i = 0; i < v->count; i++) m->map[region->params.data[i]] = m->made[m->e->uses.data[v->first + i]];
  for (size_t i = 0; i < region->ops.count; i++) TS_TRY(copy_op(m, rule->graph, region->ops.data[i]));
  return make_results(m, region, value);
}

static ts_status make_values(maker *m) {
  size_t room = 0;
  ts_value_id *results;
  for (uint32_t i = 0; i < m->e->rule_count; i++)
    if (m->rules[i].graph->values.count > room) room = m->rules[i].graph->values.count;
  TS_TRY(TS_NEW_ARRAY(room, &m->map));
  TS_TRY(TS_NEW_ARRAY(m->e->values.count, &m->made));
  TS_TRY(ts_graph_reserve(m->graph, 2 * m->e->values.count, 2 * m->e->values.count));
  for (size_t i = 0; i < m->e->values.count; i++) TS_TRY(make_value(m, (uint32_t)i));
  TS_TRY(TS_NEW_ARRAY(m->e->results.count, &results));
  for (size_t i = 0; i < m->e->results.count; i++) results[i] = m->made[m->e->results.data[i]];
  ts_status status = ts_graph_set_results(m->graph, TS_ROOT, results, m->e->results.count);
  ts_free(results);
  return status;
}

static ts_status add_params(const ts_expr *e, ts_graph *graph) {
  TS_TRY(ts_graph_reserve(graph, e->params.count, 0));
  TS_TRY(ts_graph_reserve_region(graph, TS_ROOT, e->params.count, 0));
  for (size_t i = 0; i < e->params.count; i++) {
    const ts_type *form = &e->forms.data[e->params.data[i]];
    ts_value_id param;
    TS_TRY(ts_graph_add_param(graph, TS_ROOT, form->dtype, &form->shape, &param));
  }
  return TS_SUCCESS;
}

/* Most rules of an expression are regions of one program, lowered for the first expression with equal layers. */
static ts_status new_graph(const ts_expr *e, const ts_expr_rule *rules, ts_graph **out) {
  for (uint32_t i = 0; i < e->origins.count; i++)
    if (e->origins.data[i].kept) return ts_graph_create_from(rules[i].graph, out);
  return e->rule_count ? ts_graph_create_from(rules[0].graph, out) : ts_graph_create(out);
}

/* The rules' root shardings are of their own parameters. */
static ts_status set_mesh(const ts_expr *e, const ts_expr_rule *rules, ts_graph *graph) {
  graph->param_shardings.count = graph->result_shardings.count = 0;
  return ts_graph_set_mesh(graph, ts_expr_mesh(e, rules));
}

static ts_status set_cuts(const ts_expr *e, ts_root_side side, ts_graph *graph) {
  for (size_t i = 0; i < e->cuts[side].count; i++)
    if (e->cuts[side].data[i].given) TS_TRY(ts_graph_set_sharding(graph, side, i, &e->cuts[side].data[i].sharding));
  return TS_SUCCESS;
}

ts_status ts_expr_make(const ts_expr *e, const ts_expr_rule *rules, ts_graph **out) {
  maker m = {.e = e, .rules = rules};
  ts_status status = new_graph(e, rules, &m.graph);
  if (!status) status = set_mesh(e, rules, m.graph);
  if (!status) status = add_params(e, m.graph);
  if (!status) status = make_values(&m);
  if (!status) status = set_cuts(e, TS_PARAMS, m.graph);
  if (!status) status = set_cuts(e, TS_RESULTS, m.graph);
  TS_VEC_FREE(&m.parts);
  ts_free(m.made);
  ts_free(m.map);
  if (status)
    ts_graph_destroy(m.graph);
  else
    *out = m.graph;
  return status;
}
