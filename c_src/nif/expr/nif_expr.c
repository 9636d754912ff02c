#include "nif/expr/nif_expr.h"

#include "front/expr_kept.h"
#include "front/expr_reader.h"
#include "nif/expr/nif_expr_terms.h"
#include "nif/nif_graph.h"

#include <string.h>

static ErlNifResourceType *expression_type;

/* How many nodes can be read or become ops in less than a millisecond, and how many can be packed; larger expressions
 * move to dirty schedulers. */
enum { SHORT = 4000, SHORT_PACK = 20 * SHORT };

static void expression_destroy(ErlNifEnv *env, void *object) {
  (void)env;
  ts_expr_deinit(object);
}

bool ts_nif_expr_init(ErlNifEnv *env, ErlNifResourceFlags flags) {
  ts_nif_expr_terms_init(env);
  expression_type = enif_open_resource_type(env, NULL, "tessera_expression", expression_destroy, flags, NULL);
  return expression_type != NULL;
}

/* ---- rules ---- */

/* Reads the regions of rules that are not in the cache. */
static ts_status get_region(ErlNifEnv *env, const ts_graph *graph, ERL_NIF_TERM *list, ts_expr_rule *out) {
  ERL_NIF_TERM head;
  unsigned region;
  if (!enif_get_list_cell(env, *list, &head, list)) return ts_nif_expected(env, "a region for each rule", *list);
  if (!graph || !enif_get_uint(env, head, &region) || region == TS_ROOT || region >= graph->regions.count)
    return ts_nif_expected(env, "a region of the rules", head);
  *out = (ts_expr_rule){graph, region};
  return TS_SUCCESS;
}

static ts_status get_rules(ErlNifEnv *env, const ts_expr *e, const ts_graph *graph, ERL_NIF_TERM list,
                           ts_expr_rule *out) {
  for (uint32_t i = 0; i < e->rule_count; i++) {
    const ts_expr_origin *origin = &e->origins.data[i];
    if (origin->kept)
      out[i] = origin->kept->rule;
    else if (origin->constant)
      out[i] = (ts_expr_rule){e->constants, origin->constant};
    else
      TS_TRY(get_region(env, graph, &list, &out[i]));
  }
  return TS_SUCCESS;
}

/* ---- packing ---- */

static void retain_program(void *object) { enif_keep_resource(object); }
static void release_program(void *object) { enif_release_resource(object); }

static ts_status pack_with(ErlNifEnv *env, const ts_expr *e, const ts_expr_rule *rules, ts_nif_builder *program,
                           ERL_NIF_TERM *out) {
  const ts_expr_owner owner = {program, retain_program, release_program};
  ts_text packed = {0};
  ts_status status = ts_expr_pack(e, rules, program ? &owner : NULL, &packed);
  if (!status) *out = ts_nif_described(env, &packed);
  ts_text_deinit(&packed);
  return status;
}

/* Packs the program if all of its rules are cached or constants. */
static ts_status pack_known(ErlNifEnv *env, const ts_expr *e, ERL_NIF_TERM *out) {
  ts_expr_rule *rules;
  TS_TRY(TS_NEW_ARRAY(e->rule_count, &rules));
  ts_status status = get_rules(env, e, NULL, enif_make_list(env, 0), rules);
  if (!status) status = ts_expr_check_rules(e, rules);
  if (!status) status = pack_with(env, e, rules, NULL, out);
  ts_free(rules);
  return status;
}

/* ---- reading ---- */

static ERL_NIF_TERM form_term(ErlNifEnv *env, const ts_type *form) {
  return enif_make_tuple2(env, ts_nif_dtype(form->dtype), ts_nif_shape(env, &form->shape));
}

/* {Node, [{Type, Shape}]}: a node of the rule, and the forms of its operands. */
static ERL_NIF_TERM rule_term(ErlNifEnv *env, const ts_expr *e, ERL_NIF_TERM node, uint32_t example) {
  const ts_expr_value *v = &e->values.data[example];
  ERL_NIF_TERM forms = enif_make_list(env, 0);
  for (uint32_t i = v->count; i-- > 0;) {
    const ts_expr_value *used = &e->values.data[e->uses.data[v->first + i]];
    forms = enif_make_list_cell(env, form_term(env, &e->forms.data[used->form]), forms);
  }
  return enif_make_tuple2(env, node, forms);
}

static ERL_NIF_TERM rules_term(ErlNifEnv *env, const ts_expr *e, const ts_expr_terms *terms) {
  ERL_NIF_TERM rules = enif_make_list(env, 0);
  for (size_t i = terms->nodes.count; i-- > 0;)
    rules = enif_make_list_cell(env, rule_term(env, e, terms->nodes.data[i], terms->examples.data[i]), rules);
  return rules;
}

static ts_status read_term(ErlNifEnv *env, ts_expr *e, const ts_expr_terms *terms, ERL_NIF_TERM *out) {
  ERL_NIF_TERM sources = enif_make_list(env, 0), third;
  for (size_t i = terms->sources.count; i-- > 0;) sources = enif_make_list_cell(env, terms->sources.data[i], sources);
  if (terms->nodes.count)
    third = rules_term(env, e, terms);
  else
    TS_TRY(pack_known(env, e, &third));
  *out = enif_make_tuple3(env, enif_make_resource(env, e), sources, third);
  return TS_SUCCESS;
}

typedef TS_VEC(ts_expr_term) terms_list;

/* False when it is no proper list. */
static ts_status get_list(ErlNifEnv *env, ERL_NIF_TERM list, terms_list *out, bool *out_proper) {
  ERL_NIF_TERM head;
  while (enif_get_list_cell(env, list, &head, &list)) TS_TRY(TS_VEC_PUSH(out, head));
  *out_proper = enif_is_empty_list(env, list);
  return TS_SUCCESS;
}

static ts_status read_with(ErlNifEnv *env, ts_expr_reader *reader, const ts_expr_request *request,
                           ts_expr_outcome *outcome, ERL_NIF_TERM *out) {
  const ts_expr_terms *terms;
  ts_expr *e = enif_alloc_resource(expression_type, sizeof *e);
  if (!e) return ts_error_no_memory();
  memset(e, 0, sizeof *e);
  ts_status status = ts_expr_read(reader, request, e, &terms, outcome);
  if (!status && *outcome == TS_EXPR_READ) status = read_term(env, e, terms, out);
  enif_release_resource(e);
  return status;
}

static ts_status read_request(ErlNifEnv *env, const ts_expr_request *request, ts_expr_outcome *outcome,
                              ERL_NIF_TERM *out) {
  const ts_expr_source source = ts_nif_expr_source(env);
  ts_expr_reader *reader;
  TS_TRY(ts_expr_reader_create(&source, &reader));
  ts_status status = read_with(env, reader, request, outcome, out);
  ts_expr_reader_destroy(reader);
  return status;
}

static ts_status read_expression(ErlNifEnv *env, const ERL_NIF_TERM argv[], size_t limit, ts_expr_outcome *outcome,
                                 ERL_NIF_TERM *out) {
  terms_list roots = {0}, scoped = {0};
  bool is_proper, are_ops;
  *outcome = TS_EXPR_OTHER;
  ts_status status = get_list(env, argv[0], &roots, &is_proper);
  if (!status) status = get_list(env, argv[1], &scoped, &are_ops);
  const ts_expr_request request = {roots.data, scoped.data, roots.count, scoped.count, limit};
  if (!status && is_proper) status = read_request(env, &request, outcome, out);
  TS_VEC_FREE(&roots);
  TS_VEC_FREE(&scoped);
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
  /* expression_read([Node], Scoped :: [atom()]) -> {Expression, [Position | Tensor], Steps} | undefined Steps ::
   * [{Node, [{Type, Shape}]}] | {Packed :: binary(), Hash :: <<_:128>>} Gives the sources of the program's parameters,
   * and one node for each rule that is not cached, with the forms of its operands. If all are cached, the program is
   * packed at once. Undefined when there is an op of Scoped or anything else that is not a plain step. Long ones move
   * to a dirty scheduler. */
  ERL_NIF_TERM term;
  ts_expr_outcome outcome;
  TS_NIF_TRY(env, read_expression(env, argv, SHORT, &outcome, &term));
  if (outcome == TS_EXPR_LONG)
    return enif_schedule_nif(env, "expression_read", ERL_NIF_DIRTY_JOB_CPU_BOUND, read_long, argc, argv);
  return outcome == TS_EXPR_READ ? term : ts_atom.undefined_;
}

void ts_nif_expr_forget(void) { ts_expr_kept_clear(); }

/* ---- programs ---- */

/* An expression with its rules. */
typedef struct ruled {
  const ts_expr *e;
  ts_nif_builder *program; /* the regions of rules that are not cached; NULL when all are */
  ts_expr_rule *rules;     /* to be freed */
} ruled;

static ts_status get_program(ErlNifEnv *env, ERL_NIF_TERM term, ts_nif_builder **out, const ts_graph **out_graph) {
  if (enif_is_identical(term, ts_atom.undefined_)) return TS_SUCCESS;
  if (!ts_nif_builder_get(env, term, out)) return ts_nif_expected(env, "a program of rules", term);
  return ts_nif_builder_graph(*out, out_graph);
}

static ts_status get_ruled(ErlNifEnv *env, const ERL_NIF_TERM argv[], ruled *out) {
  void *object;
  const ts_graph *graph = NULL;
  *out = (ruled){0};
  if (!enif_get_resource(env, argv[0], expression_type, &object)) return ts_nif_expected(env, "an expression", argv[0]);
  out->e = object;
  TS_TRY(get_program(env, argv[1], &out->program, &graph));
  TS_TRY(TS_NEW_ARRAY(out->e->rule_count, &out->rules));
  ts_status status = get_rules(env, out->e, graph, argv[2], out->rules);
  if (!status) status = ts_expr_check_rules(out->e, out->rules);
  if (status) ts_free(out->rules);
  return status;
}

static bool is_short(ErlNifEnv *env, ERL_NIF_TERM expression, size_t limit) {
  void *object;
  return !enif_get_resource(env, expression, expression_type, &object) || ((ts_expr *)object)->values.count <= limit;
}

static ERL_NIF_TERM program(ErlNifEnv *env, int argc, const ERL_NIF_TERM argv[]) {
  ruled x;
  ts_graph *graph;
  ERL_NIF_TERM term;
  (void)argc;
  TS_NIF_TRY(env, get_ruled(env, argv, &x));
  ts_status status = ts_expr_make(x.e, x.rules, &graph);
  ts_free(x.rules);
  if (!status) status = ts_nif_builder_of(env, graph, &term);
  return status ? ts_nif_error(env, status) : term;
}

ERL_NIF_TERM ts_nif_expression_program(ErlNifEnv *env, int argc, const ERL_NIF_TERM argv[]) {
  /* expression_program(Expression, Rules :: Builder | undefined, [Region]) -> Builder: makes a finished program. Each
   * node is a copy of its rule: a region of Rules or a cached one. Long ones move to a dirty scheduler. */
  if (is_short(env, argv[0], SHORT)) return program(env, argc, argv);
  return enif_schedule_nif(env, "expression_program", ERL_NIF_DIRTY_JOB_CPU_BOUND, program, argc, argv);
}

static ERL_NIF_TERM pack(ErlNifEnv *env, int argc, const ERL_NIF_TERM argv[]) {
  ruled x;
  ERL_NIF_TERM term;
  (void)argc;
  TS_NIF_TRY(env, get_ruled(env, argv, &x));
  ts_status status = pack_with(env, x.e, x.rules, x.program, &term);
  ts_free(x.rules);
  return status ? ts_nif_error(env, status) : term;
}

ERL_NIF_TERM ts_nif_expression_pack(ErlNifEnv *env, int argc, const ERL_NIF_TERM argv[]) {
  /* expression_pack(Expression, Rules :: Builder | undefined, [Region]) -> {Packed :: binary(), Hash :: <<_:128>>}: the
   * packed program, which any VM can unpack, and its hash. */
  if (is_short(env, argv[0], SHORT_PACK)) return pack(env, argc, argv);
  return enif_schedule_nif(env, "expression_pack", ERL_NIF_DIRTY_JOB_CPU_BOUND, pack, argc, argv);
}

static ERL_NIF_TERM unpack(ErlNifEnv *env, int argc, const ERL_NIF_TERM argv[]) {
  ErlNifBinary packed;
  ERL_NIF_TERM term;
  ts_graph *graph;
  (void)argc;
  if (!enif_inspect_binary(env, argv[0], &packed)) return ts_nif_error(env, ts_nif_expected(env, "a binary", argv[0]));
  TS_NIF_TRY(env, ts_expr_unpack(packed.data, packed.size, &graph));
  TS_NIF_TRY(env, ts_nif_builder_of(env, graph, &term));
  return term;
}

ERL_NIF_TERM ts_nif_expression_unpack(ErlNifEnv *env, int argc, const ERL_NIF_TERM argv[]) {
  /* expression_unpack(Packed :: binary()) -> Builder: the finished program */
  return enif_schedule_nif(env, "expression_unpack", ERL_NIF_DIRTY_JOB_CPU_BOUND, unpack, argc, argv);
}
