/* Packed programs: a mark, the numbers of rules, parameters, values and results; the forms; each rule as the text of a
 * program, or a constant; then words: the form of each parameter, the rule and operands of each value, or its
 * parameter, and the results. A mesh follows, if there is one: its sizes and names, and for each parameter and result
 * how it is cut. The bytes may have any origin. */
#include "front/expr_kept.h"
#include "ir/infer.h"

#include <inttypes.h>
#include <string.h>

_Static_assert(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__, "words are written as they lie in memory");

/* A program's text never begins with these bytes. */
static const char mark[8] = {'\0', 'T', 'S', 'X', 'P', 'R', '3', '\n'};

/* Limit for the ops and tuple elements of a packed program: a rule is written once but may be used by as many values as
 * there are words. */
#define MOST_OPS (UINT64_C(1) << 22)

/* The word of a leaf: this bit and its parameter; and the word of an element; its tuple follows. */
#define PARAM (UINT32_C(1) << 31)
#define ELEM (UINT32_C(1) << 30)

/* Instead of a rule's length: a constant, given by form and bits, not text. Printing and parsing a number takes longest
 * in the key of a short program. */
#define CONSTANT UINT32_MAX

/* Stands for the number of cuts; and bits of a mesh. */
#define NOT_GIVEN UINT32_MAX
#define PARTITIONED UINT32_C(1)
#define COORDINATES UINT32_C(2)

/* Room for a type's name. */
enum { TYPE_BYTES = 8 };

/* ---- writing ---- */

static void put_word(ts_text *out, uint32_t word) { ts_text_append_n(out, (const char *)&word, sizeof word); }

/* Writes the text after its length. */
static ts_status put_region(ts_text *out, const ts_expr_rule *rule) {
  size_t at = out->length;
  put_word(out, 0);
  TS_TRY(ts_graph_print_region(rule->graph, rule->region, out));
  if (out->failed) return ts_error_no_memory();
  uint32_t length = (uint32_t)(out->length - at - sizeof length);
  memcpy(out->data + at, &length, sizeof length);
  return TS_SUCCESS;
}

/* Writes the type by its name: names are the same in all versions. */
static void put_form(ts_text *out, const ts_type *form) {
  char name[TYPE_BYTES] = {0};
  const char *type = ts_dtype_name(form->dtype);
  memcpy(name, type, strnlen(type, sizeof name));
  ts_text_append_n(out, name, sizeof name);
  put_word(out, (uint32_t)form->shape.rank);
  ts_text_append_n(out, (const char *)form->shape.dims, (size_t)form->shape.rank * sizeof *form->shape.dims);
}

static void put_constant(ts_text *out, const ts_expr_rule *rule) {
  const ts_attrs *attrs = ts_graph_op(rule->graph, ts_expr_region(rule)->ops.data[0])->attrs;
  put_word(out, CONSTANT);
  put_form(out, &(ts_type){attrs->constant.dtype, attrs->constant.shape});
  ts_text_append_n(out, (const char *)&attrs->constant.value.bits, sizeof attrs->constant.value.bits);
}

static ts_status put_rule(ts_text *out, const ts_expr *e, uint32_t number, const ts_expr_rule *rule,
                          const ts_expr_owner *owner) {
  const ts_expr_origin *origin = &e->origins.data[number];
  if (origin->kept) {
    put_word(out, (uint32_t)origin->kept->length);
    ts_text_append_n(out, origin->kept->text, origin->kept->length);
    return TS_SUCCESS;
  }
  if (origin->constant) {
    put_constant(out, rule);
    return TS_SUCCESS;
  }
  size_t at = out->length + sizeof(uint32_t);
  TS_TRY(put_region(out, rule));
  if (owner && origin->key_words)
    ts_expr_kept_add(e->keys.data + origin->key, origin->key_words * sizeof *e->keys.data, owner, rule, out->data + at,
                     out->length - at);
  return TS_SUCCESS;
}

static void put_words(ts_text *out, const uint32_t *words, size_t count) {
  ts_text_append_n(out, (const char *)words, count * sizeof *words);
}

static void put_value(ts_text *out, const ts_expr *e, const ts_expr_value *v) {
  if (v->rule == TS_NO_ID) {
    put_word(out, v->count | PARAM); /* TS_NO_ID is unchanged */
    return;
  }
  if (v->rule == TS_EXPR_ELEM) {
    put_word(out, v->count | ELEM);
    put_word(out, v->first);
    return;
  }
  put_word(out, v->rule);
  if (v->count) put_words(out, e->uses.data + v->first, v->count);
}

static void put_string(ts_text *out, const char *text) {
  put_word(out, (uint32_t)strlen(text));
  ts_text_append(out, text);
}

/* The number of cuts, or NOT_GIVEN, and each cut. */
static void put_sharding(ts_text *out, const ts_expr *e, ts_root_side side, size_t i) {
  const ts_root_sharding *cuts = i < e->cuts[side].count ? &e->cuts[side].data[i] : NULL;
  if (!cuts || !cuts->given) {
    put_word(out, NOT_GIVEN);
    return;
  }
  put_word(out, (uint32_t)cuts->sharding.count);
  for (int32_t k = 0; k < cuts->sharding.count; k++)
    put_word(out, (uint32_t)cuts->sharding.cuts[k].axis << 8 | cuts->sharding.cuts[k].dim);
}

static void put_mesh(ts_text *out, const ts_expr *e, const ts_mesh *mesh) {
  if (mesh->rank == 0) return;
  put_word(out, (uint32_t)mesh->rank);
  put_word(out, (mesh->partitioned ? PARTITIONED : 0) | (mesh->coordinates ? COORDINATES : 0));
  put_string(out, mesh->name);
  for (int32_t i = 0; i < mesh->rank; i++) {
    put_word(out, (uint32_t)mesh->sizes[i]);
    put_string(out, mesh->axis_names[i]);
  }
  for (size_t i = 0; i < e->params.count; i++) put_sharding(out, e, TS_PARAMS, i);
  for (size_t i = 0; i < e->results.count; i++) put_sharding(out, e, TS_RESULTS, i);
}

ts_status ts_expr_pack(const ts_expr *e, const ts_expr_rule *rules, const ts_expr_owner *owner, ts_text *out) {
  ts_text_reserve(out, 4 * (e->values.count + e->uses.count + e->params.count + e->results.count) +
                           200 * (size_t)e->rule_count);
  ts_text_append_n(out, mark, sizeof mark);
  put_word(out, e->rule_count);
  put_word(out, (uint32_t)e->params.count);
  put_word(out, (uint32_t)e->values.count);
  put_word(out, (uint32_t)e->results.count);
  put_word(out, (uint32_t)e->forms.count);
  for (size_t i = 0; i < e->forms.count; i++) put_form(out, &e->forms.data[i]);
  for (uint32_t i = 0; i < e->rule_count; i++) TS_TRY(put_rule(out, e, i, &rules[i], owner));
  put_words(out, e->params.data, e->params.count);
  for (size_t i = 0; i < e->values.count; i++) put_value(out, e, &e->values.data[i]);
  put_words(out, e->results.data, e->results.count);
  put_mesh(out, e, ts_expr_mesh(e, rules));
  return out->failed ? ts_error_no_memory() : TS_SUCCESS;
}

/* ---- reading ---- */

typedef struct unpacker {
  const char *at, *end;
  uint32_t param_count, value_count, result_count;
  uint64_t ops;                /* ops of the values so far */
  TS_VEC(uint32_t) rule_forms; /* for each rule, the form of its first result; the others follow */
  ts_expr e;
  ts_expr_rule *rules;
  TS_VEC(ts_graph *) graphs; /* of the rules */
} unpacker;

static ts_status damaged(void) { return ts_error(TS_INVALID_ARGUMENT, "a packed program is damaged"); }

static ts_status get_word(unpacker *u, uint32_t *out) {
  *out = 0;
  if ((size_t)(u->end - u->at) < sizeof *out) return damaged();
  memcpy(out, u->at, sizeof *out);
  u->at += sizeof *out;
  return TS_SUCCESS;
}

/* Reads a count. Each counted item takes one word at least, which bounds it. */
static ts_status get_count(unpacker *u, uint32_t *out) {
  TS_TRY(get_word(u, out));
  return *out > (size_t)(u->end - u->at) / sizeof *out ? damaged() : TS_SUCCESS;
}

static ts_status get_bytes(unpacker *u, void *out, size_t size) {
  if ((size_t)(u->end - u->at) < size) return damaged();
  memcpy(out, u->at, size);
  u->at += size;
  return TS_SUCCESS;
}

static ts_status get_form(unpacker *u, ts_type *out) {
  char name[TYPE_BYTES];
  uint32_t rank;
  *out = (ts_type){.shape = {0}};
  TS_TRY(get_bytes(u, name, sizeof name));
  out->dtype = ts_dtype_from_name(name, strnlen(name, sizeof name));
  TS_TRY(get_word(u, &rank));
  if (rank > TS_MAX_RANK) return damaged();
  out->shape.rank = (int32_t)rank;
  TS_TRY(get_bytes(u, out->shape.dims, rank * sizeof *out->shape.dims));
  ts_status status = ts_infer_check_type(out->dtype, &out->shape);
  return status ? ts_error_context(status, "a packed program") : TS_SUCCESS;
}

static ts_status fill_constant(const ts_type *form, ts_scalar value, ts_graph *graph) {
  ts_value_id id;
  TS_TRY(ts_graph_constant(graph, TS_ROOT, form->dtype, &form->shape, value, &id));
  return ts_graph_set_results(graph, TS_ROOT, &id, 1);
}

static ts_status get_constant(unpacker *u, ts_graph **out) {
  ts_type form;
  ts_scalar value;
  TS_TRY(get_form(u, &form));
  TS_TRY(get_bytes(u, &value.bits, sizeof value.bits));
  TS_TRY(ts_graph_create(out));
  ts_status status = fill_constant(&form, value, *out);
  if (status) ts_graph_destroy(*out);
  return status;
}

static ts_status get_graph(unpacker *u, ts_graph **out) {
  uint32_t length;
  TS_TRY(get_word(u, &length));
  if (length == CONSTANT) return get_constant(u, out);
  if (length > (size_t)(u->end - u->at)) return damaged();
  TS_TRY(ts_graph_parse(u->at, length, out));
  u->at += length;
  return TS_SUCCESS;
}

static ts_status add_form(unpacker *u, const ts_graph *graph, ts_value_id value) {
  const ts_value *v = ts_graph_value(graph, value);
  return TS_VEC_PUSH(&u->e.forms, ((ts_type){v->dtype, *v->shape}));
}

static ts_status add_rule(unpacker *u, const ts_graph *graph) {
  const ts_region *region = ts_graph_region(graph, TS_ROOT);
  if (region->results.count == 0) return damaged();
  TS_TRY(TS_VEC_PUSH(&u->rule_forms, (uint32_t)u->e.forms.count));
  for (size_t i = 0; i < region->results.count; i++) TS_TRY(add_form(u, graph, region->results.data[i]));
  return TS_SUCCESS;
}

static ts_status get_forms(unpacker *u) {
  uint32_t count;
  TS_TRY(get_count(u, &count));
  for (uint32_t i = 0; i < count; i++) {
    ts_type form;
    TS_TRY(get_form(u, &form));
    TS_TRY(TS_VEC_PUSH(&u->e.forms, form));
  }
  return TS_SUCCESS;
}

/* Reads the parameters' forms, which must have been read. */
static ts_status get_params(unpacker *u) {
  for (uint32_t i = 0; i < u->param_count; i++) {
    uint32_t form;
    TS_TRY(get_word(u, &form));
    if (form >= u->e.forms.count) return damaged();
    TS_TRY(TS_VEC_PUSH(&u->e.params, form));
  }
  return TS_SUCCESS;
}

/* Reads the rules and the forms of their results. */
static ts_status get_rules(unpacker *u) {
  for (uint32_t i = 0; i < u->e.rule_count; i++) {
    ts_graph *graph;
    TS_TRY(TS_VEC_RESERVE(&u->graphs, u->graphs.count + 1));
    TS_TRY(get_graph(u, &graph));
    u->graphs.data[u->graphs.count++] = graph;
    u->rules[i] = (ts_expr_rule){graph, TS_ROOT};
    TS_TRY(add_rule(u, graph));
  }
  return TS_SUCCESS;
}

static ts_status get_leaf(unpacker *u, uint32_t word) {
  uint32_t param = word & ~PARAM;
  if (word == TS_NO_ID) return TS_VEC_PUSH(&u->e.values, ((ts_expr_value){TS_NO_ID, TS_NO_ID, 0, TS_NO_ID}));
  if (param >= u->e.params.count) return damaged();
  return TS_VEC_PUSH(&u->e.values, ((ts_expr_value){TS_NO_ID, u->e.params.data[param], 0, param}));
}

/* Reads an operand: an earlier value, but not a tuple or a leaf without a parameter. */
static ts_status get_use(unpacker *u, uint32_t *out) {
  TS_TRY(get_word(u, out));
  return *out < u->e.values.count && u->e.values.data[*out].form != TS_NO_ID ? TS_SUCCESS : damaged();
}

static ts_status get_operand(unpacker *u, const ts_expr_rule *rule, ts_value_id param) {
  uint32_t use;
  TS_TRY(get_use(u, &use));
  const ts_type *form = &u->e.forms.data[u->e.values.data[use].form];
  const ts_value *v = ts_graph_value(rule->graph, param);
  if (v->dtype != form->dtype || !ts_shape_equal(v->shape, &form->shape)) return damaged();
  return TS_VEC_PUSH(&u->e.uses, use);
}

static ts_status get_elem(unpacker *u, uint32_t index) {
  uint32_t tuple;
  TS_TRY(get_word(u, &tuple));
  if (tuple >= u->e.values.count) return damaged();
  uint32_t rule = u->e.values.data[tuple].rule;
  if (rule >= u->e.rule_count) return damaged();
  size_t count = ts_expr_region(&u->rules[rule])->results.count;
  if (count == 1 || index >= count) return damaged();
  uint32_t form = u->rule_forms.data[rule] + index;
  return TS_VEC_PUSH(&u->e.values, ((ts_expr_value){TS_EXPR_ELEM, form, tuple, index}));
}

static ts_status count_ops(unpacker *u, const ts_expr_rule *rule) {
  u->ops += rule->graph->ops.count + ts_expr_region(rule)->results.count;
  if (u->ops <= MOST_OPS) return TS_SUCCESS;
  return ts_error(TS_RESOURCE_EXHAUSTED, "a packed program has more than %" PRIu64 " ops", MOST_OPS);
}

static ts_status get_value(unpacker *u) {
  uint32_t rule, first = (uint32_t)u->e.uses.count;
  TS_TRY(get_word(u, &rule));
  if (rule & PARAM) return get_leaf(u, rule);
  if (rule & ELEM) return get_elem(u, rule & ~ELEM);
  if (rule >= u->e.rule_count) return damaged();
  const ts_region *region = ts_expr_region(&u->rules[rule]);
  TS_TRY(count_ops(u, &u->rules[rule]));
  for (size_t i = 0; i < region->params.count; i++) TS_TRY(get_operand(u, &u->rules[rule], region->params.data[i]));
  uint32_t form = region->results.count == 1 ? u->rule_forms.data[rule] : TS_NO_ID;
  return TS_VEC_PUSH(&u->e.values, ((ts_expr_value){rule, form, first, (uint32_t)region->params.count}));
}

/* ---- reading a mesh ---- */

/* A name; an empty one is none. */
static ts_status get_name(unpacker *u, char out[TS_MESH_NAME]) {
  uint32_t length;
  TS_TRY(get_word(u, &length));
  if (length == 0) return TS_SUCCESS;
  if (length > (size_t)(u->end - u->at)) return damaged();
  TS_TRY(ts_error_context(ts_mesh_set_name(out, u->at, length), "a packed program"));
  u->at += length;
  return TS_SUCCESS;
}

static ts_status get_axes(unpacker *u) {
  ts_mesh *mesh = &u->e.mesh;
  uint32_t rank, bits, size;
  TS_TRY(get_word(u, &rank));
  TS_TRY(get_word(u, &bits));
  if (rank == 0 || rank > TS_MAX_MESH_AXES) return damaged();
  mesh->partitioned = bits & PARTITIONED;
  mesh->coordinates = bits & COORDINATES;
  TS_TRY(get_name(u, mesh->name));
  for (mesh->rank = 0; mesh->rank < (int32_t)rank; mesh->rank++) {
    TS_TRY(get_word(u, &size));
    if (size > TS_MAX_PARTITIONS) return damaged();
    mesh->sizes[mesh->rank] = (int32_t)size;
    TS_TRY(get_name(u, mesh->axis_names[mesh->rank]));
  }
  ts_status status = ts_mesh_check(mesh);
  return status ? ts_error_context(status, "a packed program") : TS_SUCCESS;
}

/* The parts of a partitioned program do not show the dims that a cut must divide. */
static ts_status get_sharding(unpacker *u, ts_root_side side, uint32_t form) {
  ts_root_sharding root = {0};
  ts_dims axes = {0}, dims = {0};
  ts_shape whole;
  uint32_t count, cut;
  TS_TRY(get_word(u, &count));
  if (count == NOT_GIVEN) return TS_VEC_PUSH(&u->e.cuts[side], root);
  if (count > TS_MAX_MESH_AXES) return damaged();
  axes.rank = dims.rank = (int32_t)count;
  for (uint32_t i = 0; i < count; i++) {
    TS_TRY(get_word(u, &cut));
    axes.dims[i] = cut >> 8;
    dims.dims[i] = cut & 0xff;
  }
  ts_shape_copy(&whole, &u->e.forms.data[form].shape);
  for (int32_t d = 0; u->e.mesh.partitioned && d < whole.rank; d++) whole.dims[d] = 0;
  root.given = true;
  ts_status status = ts_sharding_make(&u->e.mesh, &axes, &dims, &whole, &root.sharding);
  return status ? ts_error_context(status, "a packed program") : TS_VEC_PUSH(&u->e.cuts[side], root);
}

/* Collectives of rules are of the program's mesh. */
static ts_status check_meshes(const unpacker *u) {
  const ts_mesh *mesh = ts_expr_mesh(&u->e, u->rules);
  for (uint32_t i = 0; i < u->e.rule_count; i++) {
    const ts_mesh *own = &u->rules[i].graph->mesh;
    if (own->rank > 0 && (own->rank != mesh->rank || memcmp(own->sizes, mesh->sizes, sizeof own->sizes) != 0))
      return damaged();
  }
  return TS_SUCCESS;
}

static ts_status get_mesh(unpacker *u) {
  if (u->at == u->end) return check_meshes(u);
  TS_TRY(get_axes(u));
  for (uint32_t i = 0; i < u->param_count; i++) TS_TRY(get_sharding(u, TS_PARAMS, u->e.params.data[i]));
  for (uint32_t i = 0; i < u->result_count; i++)
    TS_TRY(get_sharding(u, TS_RESULTS, u->e.values.data[u->e.results.data[i]].form));
  return check_meshes(u);
}

static ts_status get_expression(unpacker *u) {
  if ((size_t)(u->end - u->at) < sizeof mark || memcmp(u->at, mark, sizeof mark) != 0) return damaged();
  u->at += sizeof mark;
  TS_TRY(get_count(u, &u->e.rule_count));
  TS_TRY(get_count(u, &u->param_count));
  TS_TRY(get_count(u, &u->value_count));
  TS_TRY(get_count(u, &u->result_count));
  TS_TRY(TS_NEW_ARRAY(u->e.rule_count, &u->rules));
  TS_TRY(get_forms(u));
  TS_TRY(get_rules(u));
  TS_TRY(get_params(u));
  for (uint32_t i = 0; i < u->value_count; i++) TS_TRY(get_value(u));
  for (uint32_t i = 0; i < u->result_count; i++) {
    uint32_t use;
    TS_TRY(get_use(u, &use));
    TS_TRY(TS_VEC_PUSH(&u->e.results, use));
  }
  TS_TRY(get_mesh(u));
  return u->at == u->end ? TS_SUCCESS : damaged();
}

/* Without a mesh the types of rules are all there is to check. */
static ts_status make_checked(const unpacker *u, ts_graph **out) {
  TS_TRY(ts_expr_make(&u->e, u->rules, out));
  ts_status status = (*out)->mesh.rank > 0 ? ts_graph_verify(*out) : TS_SUCCESS;
  if (status) ts_graph_destroy(*out);
  return status ? ts_error_context(status, "a packed program") : TS_SUCCESS;
}

ts_status ts_expr_unpack(const void *bytes, size_t size, ts_graph **out) {
  unpacker u = {.at = bytes, .end = (const char *)bytes + size};
  ts_status status = get_expression(&u);
  if (!status) status = make_checked(&u, out);
  for (size_t i = 0; i < u.graphs.count; i++) ts_graph_destroy(u.graphs.data[i]);
  TS_VEC_FREE(&u.graphs);
  TS_VEC_FREE(&u.rule_forms);
  ts_free(u.rules);
  ts_expr_deinit(&u.e);
  return status;
}
