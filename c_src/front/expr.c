#include "front/expr.h"

#include "front/expr_kept.h"

void ts_expr_deinit(ts_expr *e) {
  for (size_t i = 0; i < e->origins.count; i++) ts_expr_kept_release(e->origins.data[i].kept);
  ts_graph_destroy(e->constants);
  TS_VEC_FREE(&e->values);
  TS_VEC_FREE(&e->uses);
  TS_VEC_FREE(&e->results);
  TS_VEC_FREE(&e->params);
  TS_VEC_FREE(&e->arities);
  TS_VEC_FREE(&e->forms);
  TS_VEC_FREE(&e->keys);
  TS_VEC_FREE(&e->origins);
  TS_VEC_FREE(&e->cuts[TS_PARAMS]);
  TS_VEC_FREE(&e->cuts[TS_RESULTS]);
}

const ts_mesh *ts_expr_mesh(const ts_expr *e, const ts_expr_rule *rules) {
  for (uint32_t i = 0; e->mesh.rank == 0 && i < e->rule_count; i++)
    if (rules[i].graph->mesh.rank > 0) return &rules[i].graph->mesh;
  return &e->mesh;
}

/* ---- forms ---- */

static uint32_t hash_form(const ts_type *form) {
  uint64_t h = (uint64_t)form->dtype * 31 + (uint64_t)form->shape.rank;
  for (int32_t i = 0; i < form->shape.rank; i++) h = ts_expr_mix(h, (uint64_t)form->shape.dims[i]);
  return (uint32_t)(h ^ h >> 32);
}

ts_status ts_expr_add_form(ts_expr *e, ts_expr_table *by_form, const ts_type *form, uint32_t *out) {
  uint32_t hash = hash_form(form);
  for (size_t at = hash; (*out = ts_expr_table_next(by_form, hash, &at)) != TS_NO_ID;) {
    const ts_type *other = &e->forms.data[*out];
    if (other->dtype == form->dtype && ts_shape_equal(&other->shape, &form->shape)) return TS_SUCCESS;
  }
  *out = (uint32_t)e->forms.count;
  TS_TRY(TS_VEC_PUSH(&e->forms, *form));
  return ts_expr_table_add(by_form, hash, *out);
}

/* ---- constants ---- */

static ts_status put_constant(ts_graph *graph, const ts_type *form, ts_scalar scalar, ts_region_id *out) {
  ts_value_id value;
  TS_TRY(ts_graph_add_region(graph, out));
  TS_TRY(ts_graph_constant(graph, *out, form->dtype, &form->shape, scalar, &value));
  return ts_graph_set_results(graph, *out, &value, 1);
}

ts_status ts_expr_add_constant(ts_expr *e, const ts_type *form, ts_scalar value, ts_region_id *out) {
  if (!e->constants) TS_TRY(ts_graph_create(&e->constants));
  return put_constant(e->constants, form, value, out);
}

/* ---- rules ---- */

static ts_status check_result(const ts_expr *e, const ts_expr_rule *rule, uint32_t result, uint32_t form_number) {
  const ts_value *made = ts_graph_value(rule->graph, ts_expr_region(rule)->results.data[result]);
  const ts_type *form = &e->forms.data[form_number];
  if (made->dtype == form->dtype && ts_shape_equal(made->shape, &form->shape)) return TS_SUCCESS;
  return ts_error(TS_INTERNAL, "a rule makes %s, expected %s", TS_SHAPE_STR(made->dtype, made->shape),
                  TS_SHAPE_STR(form->dtype, &form->shape));
}

/* The types of a rule's results must equal its nodes' types. */
static ts_status check_rule(const ts_expr *e, const ts_expr_rule *rule, const ts_expr_value *example) {
  const ts_region *region = ts_expr_region(rule);
  uint32_t arity = e->arities.data[example->rule];
  if (region->params.count != example->count || region->results.count != arity)
    return ts_error(TS_INTERNAL, "a rule takes %zu values and makes %zu, expected %u and %u", region->params.count,
                    region->results.count, example->count, arity);
  return arity == 1 ? check_result(e, rule, 0, example->form) : TS_SUCCESS;
}

/* The parameters of a rule must have the types that Erlang was told. */
static ts_status check_operands(const ts_expr *e, const ts_expr_rule *rule, const ts_expr_value *example) {
  const ts_region *region = ts_expr_region(rule);
  for (uint32_t i = 0; i < example->count; i++) {
    const ts_value *param = ts_graph_value(rule->graph, region->params.data[i]);
    const ts_type *form = &e->forms.data[e->values.data[e->uses.data[example->first + i]].form];
    if (param->dtype != form->dtype || !ts_shape_equal(param->shape, &form->shape))
      return ts_error(TS_INTERNAL, "a rule takes %s, expected %s", TS_SHAPE_STR(param->dtype, param->shape),
                      TS_SHAPE_STR(form->dtype, &form->shape));
  }
  return TS_SUCCESS;
}

/* Rules are numbered in order of first use, and all nodes of a rule have the same types. */
ts_status ts_expr_check_rules(const ts_expr *e, const ts_expr_rule *rules) {
  uint32_t next = 0;
  for (size_t i = 0; i < e->values.count; i++) {
    const ts_expr_value *v = &e->values.data[i];
    if (v->rule == TS_EXPR_ELEM) TS_TRY(check_result(e, &rules[e->values.data[v->first].rule], v->count, v->form));
    if (v->rule != next || next == e->rule_count) continue;
    TS_TRY(check_rule(e, &rules[next], v));
    TS_TRY(check_operands(e, &rules[next], v));
    next++;
  }
  return TS_SUCCESS;
}
