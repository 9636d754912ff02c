#include "nif/nif_expr_internal.h"

#include "nif/nif_graph.h"

#include <string.h>

static ErlNifResourceType *expression_type;

/* Nodes that are read, or become ops, in the time that a hop to a dirty scheduler may take. */
enum { SHORT = 1500 };

static void expression_destroy(ErlNifEnv *env, void *object) {
  (void)env;
  ts_expr_deinit(object);
}

bool ts_nif_expr_init(ErlNifEnv *env, ErlNifResourceFlags flags) {
  ts_expr_atoms_init(env);
  expression_type = enif_open_resource_type(env, NULL, "tessera_expression", expression_destroy, flags, NULL);
  return expression_type != NULL;
}

/* ---- reading ---- */

static ERL_NIF_TERM form_term(ErlNifEnv *env, const ts_type *form) {
  return enif_make_tuple2(env, ts_nif_dtype(form->dtype), ts_nif_shape(env, &form->shape));
}

/* {Node, [{Type, Shape}]}: of what the node reads. */
static ERL_NIF_TERM rule_term(ErlNifEnv *env, const ts_expr *e, ERL_NIF_TERM node, uint32_t example) {
  const ts_expr_value *v = &e->values.data[example];
  ERL_NIF_TERM forms = enif_make_list(env, 0);
  for (uint32_t i = v->count; i-- > 0;) {
    const ts_expr_value *used = &e->values.data[e->uses.data[v->first + i]];
    forms = enif_make_list_cell(env, form_term(env, &e->forms.data[used->form]), forms);
  }
  return enif_make_tuple2(env, node, forms);
}

static ERL_NIF_TERM read_term(ErlNifEnv *env, ts_expr *e, const ts_expr_terms *terms) {
  ERL_NIF_TERM rules = enif_make_list(env, 0);
  for (size_t i = terms->nodes.count; i-- > 0;)
    rules = enif_make_list_cell(env, rule_term(env, e, terms->nodes.data[i], terms->examples.data[i]), rules);
  ERL_NIF_TERM sources = enif_make_list_from_array(env, terms->sources.data, (unsigned)terms->sources.count);
  return enif_make_tuple3(env, enif_make_resource(env, e), sources, rules);
}

static ts_status read_expression(ErlNifEnv *env, const ERL_NIF_TERM argv[], size_t limit, ts_expr_outcome *outcome,
                                 ERL_NIF_TERM *out) {
  ts_expr_terms terms = {0};
  ts_expr *e = enif_alloc_resource(expression_type, sizeof *e);
  if (!e) return ts_error_no_memory();
  memset(e, 0, sizeof *e);
  ts_status status = ts_expr_read(env, argv[0], argv[1], limit, e, &terms, outcome);
  if (!status && *outcome == TS_EXPR_READ) *out = read_term(env, e, &terms);
  ts_expr_terms_deinit(&terms);
  enif_release_resource(e);
  return status;
}

static ERL_NIF_TERM read_long(ErlNifEnv *env, int argc, const ERL_NIF_TERM argv[]) {
  ERL_NIF_TERM term;
  ts_expr_outcome outcome;
  (void)argc;
  TS_NIF_TRY(env, read_expression(env, argv, TS_NO_ID, &outcome, &term));
  return outcome == TS_EXPR_READ ? term : ts_atom.undefined_;
}

ERL_NIF_TERM ts_nif_expression_read(ErlNifEnv *env, int argc, const ERL_NIF_TERM argv[]) {
  /* expression_read([Node], Scoped :: [atom()]) -> {Expression, [Position | Tensor], [{Node, [{Type, Shape}]}]} |
   * undefined What the nodes need from outside, and one node for each rule with the forms of what it reads. Undefined,
   * when there is an op of Scoped or anything else that is more than a step. Long ones go to a dirty scheduler. */
  ERL_NIF_TERM term;
  ts_expr_outcome outcome;
  TS_NIF_TRY(env, read_expression(env, argv, SHORT, &outcome, &term));
  if (outcome == TS_EXPR_LONG)
    return enif_schedule_nif(env, "expression_read", ERL_NIF_DIRTY_JOB_CPU_BOUND, read_long, argc, argv);
  return outcome == TS_EXPR_READ ? term : ts_atom.undefined_;
}

/* ---- making the program ---- */

typedef struct maker {
  const ts_expr *e;
  const ts_graph *rules;
  ts_graph *graph;
  ts_region_id *regions; /* by rule */
  ts_value_id *params;   /* by source */
  ts_value_id *made;     /* by value of the expression */
  ts_value_id *map;      /* by value of the rules */
} maker;

enum { FEW = 8 };

static ts_status copy_op(maker *m, ts_op_id id) {
  const ts_op *op = ts_graph_op(m->rules, id);
  ts_value_id few[FEW], *operands = few;
  if (op->operand_count > FEW) TS_TRY(TS_NEW_ARRAY(op->operand_count, &operands));
  for (uint32_t i = 0; i < op->operand_count; i++) operands[i] = m->map[op->operands[i]];
  ts_status status = ts_graph_add_like(m->graph, TS_ROOT, m->rules, id, operands, &m->map[op->first_result]);
  if (operands != few) ts_free(operands);
  return status;
}

static ts_status make_value(maker *m, uint32_t value) {
  const ts_expr_value *v = &m->e->values.data[value];
  if (v->rule == TS_NO_ID) {
    m->made[value] = v->count == TS_NO_ID ? TS_NO_ID : m->params[v->count];
    return TS_SUCCESS;
  }
  const ts_region *region = ts_graph_region(m->rules, m->regions[v->rule]);
  for (uint32_t i = 0; i < v->count; i++) m->map[region->params.data[i]] = m->made[m->e->uses.data[v->first + i]];
  for (size_t i = 0; i < region->ops.count; i++) TS_TRY(copy_op(m, region->ops.data[i]));
  m->made[value] = m->map[region->results.data[0]];
  return TS_SUCCESS;
}

/* A rule makes of what was asked for one value of the form that its nodes have. */
static ts_status check_rules(const maker *m) {
  for (size_t i = 0; i < m->e->values.count; i++) {
    const ts_expr_value *v = &m->e->values.data[i];
    if (v->rule == TS_NO_ID) continue;
    const ts_region *region = ts_graph_region(m->rules, m->regions[v->rule]);
    if (region->params.count != v->count || region->results.count != 1 || region->height > 0)
      return ts_error(TS_INTERNAL, "a rule takes %zu values and makes %zu, expected %u and 1", region->params.count,
                      region->results.count, v->count);
    const ts_value *made = ts_graph_value(m->rules, region->results.data[0]);
    const ts_type *form = &m->e->forms.data[v->form];
    if (made->dtype != form->dtype || !ts_shape_equal(&made->shape, &form->shape))
      return ts_error(TS_INTERNAL, "a rule makes %s, expected %s", TS_SHAPE_STR(made->dtype, &made->shape),
                      TS_SHAPE_STR(form->dtype, &form->shape));
  }
  return TS_SUCCESS;
}

static ts_status make_values(maker *m) {
  TS_TRY(check_rules(m));
  TS_TRY(ts_graph_reserve(m->graph, 2 * m->e->values.count, 2 * m->e->values.count));
  for (size_t i = 0; i < m->e->values.count; i++) TS_TRY(make_value(m, (uint32_t)i));
  ts_value_id *results;
  TS_TRY(TS_NEW_ARRAY(m->e->results.count, &results));
  for (size_t i = 0; i < m->e->results.count; i++) results[i] = m->made[m->e->results.data[i]];
  ts_status status = ts_graph_set_results(m->graph, TS_ROOT, results, m->e->results.count);
  ts_free(results);
  return status;
}

/* ---- what Erlang gives ---- */

static ts_status get_regions(ErlNifEnv *env, maker *m, ERL_NIF_TERM list) {
  ERL_NIF_TERM head;
  unsigned region;
  size_t count = 0;
  TS_TRY(TS_NEW_ARRAY(m->e->rule_count, &m->regions));
  while (count < m->e->rule_count && enif_get_list_cell(env, list, &head, &list)) {
    if (!enif_get_uint(env, head, &region) || region == TS_ROOT || region >= m->rules->regions.count)
      return ts_nif_expected(env, "a region of the rules", head);
    m->regions[count++] = region;
  }
  return count == m->e->rule_count ? TS_SUCCESS : ts_nif_expected(env, "a region for each rule", list);
}

/* Sources with the same number are one parameter. Numbers begin with 0 and are first used in their order. */
static ts_status add_source(maker *m, uint32_t source, unsigned number) {
  const ts_region *root = ts_graph_region(m->graph, TS_ROOT);
  const ts_type *form = &m->e->forms.data[m->e->values.data[m->e->sources.data[source]].form];
  if (number > root->params.count) return ts_error(TS_INTERNAL, "parameter %u comes too early", number);
  if (number == root->params.count)
    return ts_graph_add_param(m->graph, TS_ROOT, form->dtype, &form->shape, &m->params[source]);
  m->params[source] = root->params.data[number];
  const ts_value *v = ts_graph_value(m->graph, m->params[source]);
  if (v->dtype == form->dtype && ts_shape_equal(&v->shape, &form->shape)) return TS_SUCCESS;
  return ts_error(TS_INTERNAL, "parameter %u is %s and %s", number, TS_SHAPE_STR(v->dtype, &v->shape),
                  TS_SHAPE_STR(form->dtype, &form->shape));
}

static ts_status add_sources(ErlNifEnv *env, maker *m, ERL_NIF_TERM list) {
  ERL_NIF_TERM head;
  unsigned number;
  TS_TRY(TS_NEW_ARRAY(m->e->sources.count, &m->params));
  for (size_t i = 0; i < m->e->sources.count; i++) {
    if (!enif_get_list_cell(env, list, &head, &list) || !enif_get_uint(env, head, &number))
      return ts_nif_expected(env, "a parameter for each source", list);
    TS_TRY(add_source(m, (uint32_t)i, number));
  }
  return TS_SUCCESS;
}

static ts_status get_rules(ErlNifEnv *env, ERL_NIF_TERM term, maker *m) {
  ts_nif_builder *rules;
  if (!ts_nif_builder_get(env, term, &rules)) return ts_nif_expected(env, "a program of rules", term);
  return ts_nif_builder_graph(rules, &m->rules);
}

static ts_status make_program(ErlNifEnv *env, const ERL_NIF_TERM argv[], maker *m) {
  TS_TRY(get_rules(env, argv[1], m));
  TS_TRY(ts_graph_create(&m->graph));
  TS_TRY(get_regions(env, m, argv[2]));
  TS_TRY(add_sources(env, m, argv[3]));
  TS_TRY(TS_NEW_ARRAY(m->e->values.count, &m->made));
  TS_TRY(TS_NEW_ARRAY(m->rules->values.count, &m->map));
  return make_values(m);
}

static ERL_NIF_TERM program(ErlNifEnv *env, int argc, const ERL_NIF_TERM argv[]) {
  void *object;
  ERL_NIF_TERM term;
  (void)argc;
  if (!enif_get_resource(env, argv[0], expression_type, &object))
    return ts_nif_error(env, ts_nif_expected(env, "an expression", argv[0]));
  maker m = {.e = object};
  ts_status status = make_program(env, argv, &m);
  ts_free(m.regions);
  ts_free(m.params);
  ts_free(m.made);
  ts_free(m.map);
  if (status)
    ts_graph_destroy(m.graph);
  else
    status = ts_nif_builder_of(env, m.graph, &term);
  return status ? ts_nif_error(env, status) : term;
}

ERL_NIF_TERM ts_nif_expression_program(ErlNifEnv *env, int argc, const ERL_NIF_TERM argv[]) {
  /* expression_program(Expression, Rules :: Builder, [Region], [Number]) -> Builder: a finished program, in which each
   * node is a copy of what a region of Rules makes; the numbers say which parameter each source is. Long ones go to a
   * dirty scheduler. */
  void *object;
  if (!enif_get_resource(env, argv[0], expression_type, &object) || ((ts_expr *)object)->values.count <= SHORT)
    return program(env, argc, argv);
  return enif_schedule_nif(env, "expression_program", ERL_NIF_DIRTY_JOB_CPU_BOUND, program, argc, argv);
}
