#include "nif/nif_graph.h"

#include "nif/nif_graph_internal.h"

#include <string.h>

static ErlNifResourceType *builder_type;

/* ---- life ---- */

static void builder_destroy(ErlNifEnv *env, void *object) {
  ts_nif_builder *b = object;
  (void)env;
  ts_tracer_deinit(&b->tracer);
  for (size_t i = 0; i < b->tensors.count; i++) enif_release_resource(b->tensors.data[i]);
  TS_VEC_FREE(&b->tensors);
  if (b->lock) enif_mutex_destroy(b->lock);
}

bool ts_nif_builder_init(ErlNifEnv *env, ErlNifResourceFlags flags) {
  builder_type = enif_open_resource_type(env, NULL, "tessera_builder", builder_destroy, flags, NULL);
  return builder_type != NULL;
}

bool ts_nif_builder_get(ErlNifEnv *env, ERL_NIF_TERM term, ts_nif_builder **out) {
  return enif_get_resource(env, term, builder_type, (void **)out);
}

ts_status ts_nif_builder_expect(ErlNifEnv *env, ERL_NIF_TERM term, ts_nif_builder **out) {
  return ts_nif_builder_get(env, term, out) ? TS_SUCCESS : ts_nif_expected(env, "a program that is traced", term);
}

static ts_status add_tensors(ErlNifEnv *env, ts_nif_builder *b, ERL_NIF_TERM list) {
  ERL_NIF_TERM head;
  ts_nif_tensor *tensor;
  while (enif_get_list_cell(env, list, &head, &list)) {
    if (!ts_nif_tensor_get(env, head, &tensor)) return ts_nif_expected(env, "a tensor", head);
    TS_TRY(TS_VEC_PUSH(&b->tensors, tensor));
    enif_keep_resource(tensor);
  }
  return TS_SUCCESS;
}

static ts_status new_builder(ts_nif_builder **out) {
  ts_nif_builder *b = enif_alloc_resource(builder_type, sizeof *b);
  if (!b) return ts_error_no_memory();
  memset(b, 0, sizeof *b);
  b->lock = enif_mutex_create("tessera_builder");
  *out = b;
  return b->lock ? TS_SUCCESS : ts_error_no_memory();
}

ERL_NIF_TERM ts_nif_builder_new(ErlNifEnv *env, int argc, const ERL_NIF_TERM argv[]) {
  /* builder_new([Ref]) -> Builder: the tensors that may become hidden arguments */
  ts_nif_builder *b = NULL;
  (void)argc;
  ts_status status = new_builder(&b);
  if (!status) status = add_tensors(env, b, argv[0]);
  if (!status) status = ts_tracer_init(&b->tracer, b->tensors.count);
  ERL_NIF_TERM term = status ? ts_nif_error(env, status) : enif_make_resource(env, b);
  if (b) enif_release_resource(b);
  return term;
}

ts_status ts_nif_builder_of(ErlNifEnv *env, ts_graph *graph, ERL_NIF_TERM *out) {
  ts_nif_builder *b = NULL;
  ts_status status = new_builder(&b);
  if (!status) {
    ts_tracer_init_finished(&b->tracer, graph);
    *out = enif_make_resource(env, b);
  } else {
    ts_graph_destroy(graph);
  }
  if (b) enif_release_resource(b);
  return status;
}

ts_status ts_nif_builder_graph(ts_nif_builder *b, const ts_graph **out) {
  if (!b->tracer.finished) return ts_error(TS_FAILED_PRECONDITION, "the program is still being traced");
  *out = b->tracer.graph;
  return TS_SUCCESS;
}

ts_status ts_nif_builder_edit(ts_nif_builder *b, ts_status (*edit)(ts_graph *, void *), void *context) {
  enif_mutex_lock(b->lock);
  ts_status status = edit(b->tracer.graph, context);
  enif_mutex_unlock(b->lock);
  return status;
}

/* ---- values ---- */

/* The reference is the caller's own: a fresh one for each value would be work for each garbage collection. */
ERL_NIF_TERM ts_nif_value_term(ErlNifEnv *env, ts_nif_builder *b, ts_value_id id) {
  const ts_value *v = ts_graph_value(b->tracer.graph, id);
  ERL_NIF_TERM ref = enif_make_list_cell(env, b->self, enif_make_uint(env, id));
  return enif_make_tuple4(env, ts_atom.tessera_, ref, ts_nif_dtype(v->dtype), ts_nif_shape(env, v->shape));
}

static ERL_NIF_TERM value_list(ErlNifEnv *env, ts_nif_builder *b, const ts_value_id *ids, size_t count) {
  ERL_NIF_TERM list = enif_make_list(env, 0);
  for (size_t i = count; i-- > 0;) list = enif_make_list_cell(env, ts_nif_value_term(env, b, ids[i]), list);
  return list;
}

/* Values with consecutive ids. */
static ERL_NIF_TERM result_list(ErlNifEnv *env, ts_nif_builder *b, ts_value_id first, size_t count) {
  ERL_NIF_TERM list = enif_make_list(env, 0);
  for (size_t i = count; i-- > 0;)
    list = enif_make_list_cell(env, ts_nif_value_term(env, b, first + (ts_value_id)i), list);
  return list;
}

static const ts_op *op_of(const ts_nif_builder *b, ts_value_id result) {
  return ts_graph_op(b->tracer.graph, ts_graph_value(b->tracer.graph, result)->op);
}

/* Of an op with one result the value, of another one a list of its values. */
static ERL_NIF_TERM results_term(ErlNifEnv *env, ts_nif_builder *b, ts_value_id first) {
  uint32_t count = op_of(b, first)->result_count;
  return count == 1 ? ts_nif_value_term(env, b, first) : result_list(env, b, first, count);
}

/* ---- operands ---- */

/* A tensor of the environment is a hidden argument; any other one is a constant. */
static ts_status use_tensor(ts_nif_builder *b, ts_nif_tensor *tensor, ts_value_id *out) {
  for (size_t i = 0; i < b->tensors.count; i++)
    if (b->tensors.data[i] == tensor) return ts_tracer_hidden(&b->tracer, i, tensor->buffer, out);
  return ts_tracer_constant(&b->tracer, tensor->buffer, out);
}

/* Of the value `term`, whose reference is `ref`. */
static ts_status get_id(ErlNifEnv *env, ts_nif_builder *b, ERL_NIF_TERM term, ERL_NIF_TERM ref, ts_value_id *out) {
  ERL_NIF_TERM head, tail;
  ts_nif_builder *owner;
  if (!enif_get_list_cell(env, ref, &head, &tail) || !ts_nif_builder_get(env, head, &owner) ||
      !enif_get_uint(env, tail, out))
    return ts_nif_expected(env, "a tensor or a number", term);
  if (owner == b) return TS_SUCCESS;
  return ts_error(TS_INVALID_ARGUMENT, "a traced value was used outside of the function that made it");
}

ts_status ts_nif_value_id(ErlNifEnv *env, ts_nif_builder *b, ERL_NIF_TERM term, ts_value_id *out) {
  ERL_NIF_TERM ref;
  if (!ts_nif_tessera_get(env, term, &ref)) return ts_nif_expected(env, "a traced value", term);
  TS_TRY(get_id(env, b, term, ref, out));
  if (*out < b->tracer.graph->values.count) return TS_SUCCESS;
  return ts_error(TS_INVALID_ARGUMENT, "no value %u in this program", *out);
}

static ts_status get_traced(ErlNifEnv *env, ts_nif_builder *b, ERL_NIF_TERM term, ERL_NIF_TERM ref, ts_value_id *out) {
  ts_value_id id;
  TS_TRY(get_id(env, b, term, ref, &id));
  return ts_tracer_value(&b->tracer, id, out);
}

/* Of a record of the API, which holds ref. */
static ts_status get_value(ErlNifEnv *env, ts_nif_builder *b, ERL_NIF_TERM term, ERL_NIF_TERM ref, ts_value_id *out) {
  ts_nif_tensor *tensor;
  if (!ts_nif_tensor_get(env, ref, &tensor)) return get_traced(env, b, term, ref, out);
  TS_TRY(ts_nif_tensor_pin(tensor));
  ts_status status = use_tensor(b, tensor, out);
  ts_nif_tensor_unpin(tensor);
  return status;
}

static ts_status get_operand(ErlNifEnv *env, ts_nif_builder *b, ERL_NIF_TERM term, ts_operand *out) {
  ERL_NIF_TERM ref;
  ts_value_id value;
  *out = (ts_operand){.is_number = true, .shape = &ts_shape_scalar};
  if (ts_nif_get_number(env, term, &out->number)) return TS_SUCCESS;
  if (!ts_nif_tessera_get(env, term, &ref)) return ts_nif_expected(env, "a tensor or a number", term);
  TS_TRY(get_value(env, b, term, ref, &value));
  *out = ts_tracer_operand(&b->tracer, value);
  return TS_SUCCESS;
}

enum { FEW = 4 };

/* Operands as decoded; `all` is `few` or an array of its own. */
typedef struct operand_list {
  ts_operand few[FEW], *all;
  size_t count;
} operand_list;

static void free_operands(operand_list *o) {
  if (o->all != o->few) ts_free(o->all);
}

static ts_operands operands_of(const operand_list *o) { return (ts_operands){o->all, o->count}; }

/* On success the caller must free the operands. */
static ts_status get_operands(ErlNifEnv *env, ts_nif_builder *b, ERL_NIF_TERM list, operand_list *out) {
  unsigned length;
  ERL_NIF_TERM head;
  ts_status status = TS_SUCCESS;
  out->all = out->few;
  out->count = 0;
  if (!enif_get_list_length(env, list, &length)) return ts_nif_expected(env, "a list of operands", list);
  if (length > FEW) TS_TRY(TS_NEW_ARRAY(length, &out->all));
  while (!status && out->count < length && enif_get_list_cell(env, list, &head, &list))
    status = get_operand(env, b, head, &out->all[out->count++]);
  if (status) free_operands(out);
  return status;
}

/* ---- types ---- */

static ts_status get_type(ErlNifEnv *env, ERL_NIF_TERM term, ts_type *out) {
  const ERL_NIF_TERM *pair;
  int arity;
  if (!enif_get_tuple(env, term, &arity, &pair) || arity != 2) return ts_nif_expected(env, "{Type, Shape}", term);
  TS_TRY(ts_nif_get_dtype(env, pair[0], &out->dtype));
  return ts_nif_get_shape(env, pair[1], &out->shape);
}

ts_status ts_nif_types_get(ErlNifEnv *env, ERL_NIF_TERM list, ts_nif_types *out) {
  ERL_NIF_TERM head;
  ts_status status = TS_SUCCESS;
  *out = (ts_nif_types){0};
  while (!status && enif_get_list_cell(env, list, &head, &list)) {
    ts_type type;
    status = get_type(env, head, &type);
    if (!status) status = TS_VEC_PUSH(out, type);
  }
  if (status) TS_VEC_FREE(out);
  return status;
}

/* ---- ops ---- */

static ts_status add_op(ErlNifEnv *env, ts_nif_builder *b, ts_opcode code, const ERL_NIF_TERM argv[],
                        ts_value_id *out) {
  operand_list operands;
  ts_attrs attrs;
  TS_TRY(ts_tracer_check(&b->tracer));
  TS_TRY(ts_nif_get_attrs(env, code, argv[3], &attrs));
  TS_TRY(get_operands(env, b, argv[2], &operands));
  ts_status status = ts_tracer_op(&b->tracer, code, operands_of(&operands), &attrs, out);
  free_operands(&operands);
  return status;
}

ERL_NIF_TERM ts_nif_builder_op(ErlNifEnv *env, ts_nif_builder *b, ts_opcode code, const ERL_NIF_TERM argv[]) {
  ts_value_id value;
  enif_mutex_lock(b->lock);
  b->self = argv[0];
  ts_status status = add_op(env, b, code, argv, &value);
  ERL_NIF_TERM term = status ? ts_nif_error(env, status) : results_term(env, b, value);
  if (!status && b->tracer.graph->places) term = enif_make_tuple2(env, ts_atom.placed_, term);
  enif_mutex_unlock(b->lock);
  return term;
}

ERL_NIF_TERM ts_nif_with_builder(ErlNifEnv *env, const ERL_NIF_TERM argv[], ts_nif_builder_fn fn) {
  ts_nif_builder *b;
  ERL_NIF_TERM term = ts_atom.ok_;
  TS_NIF_TRY(env, ts_nif_builder_expect(env, argv[0], &b));
  enif_mutex_lock(b->lock);
  b->self = argv[0];
  ts_status status = ts_tracer_check(&b->tracer);
  if (!status) status = fn(env, b, argv + 1, &term);
  enif_mutex_unlock(b->lock);
  return status ? ts_nif_error(env, status) : term;
}

static ts_status param(ErlNifEnv *env, ts_nif_builder *b, const ERL_NIF_TERM *args, ERL_NIF_TERM *out) {
  ts_type type;
  ts_value_id value;
  TS_TRY(ts_nif_get_dtype(env, args[0], &type.dtype));
  TS_TRY(ts_nif_get_shape(env, args[1], &type.shape));
  TS_TRY(ts_tracer_param(&b->tracer, &type, &value));
  *out = ts_nif_value_term(env, b, value);
  return TS_SUCCESS;
}

ERL_NIF_TERM ts_nif_param(ErlNifEnv *env, int argc, const ERL_NIF_TERM argv[]) {
  /* param(Builder, Type, Shape) -> Traced */
  (void)argc;
  return ts_nif_with_builder(env, argv, param);
}

static ts_status value(ErlNifEnv *env, ts_nif_builder *b, const ERL_NIF_TERM *args, ERL_NIF_TERM *out) {
  ts_operand operand;
  ts_value_id id;
  TS_TRY(get_operand(env, b, args[0], &operand));
  TS_TRY(ts_tracer_place(&b->tracer, &operand, &id));
  *out = ts_nif_value_term(env, b, id);
  return TS_SUCCESS;
}

ERL_NIF_TERM ts_nif_value(ErlNifEnv *env, int argc, const ERL_NIF_TERM argv[]) {
  /* value(Builder, Operand) -> Traced: the operand as a value of the current region */
  (void)argc;
  return ts_nif_with_builder(env, argv, value);
}

/* ---- regions ---- */

static ts_status get_region(ErlNifEnv *env, ts_nif_builder *b, ERL_NIF_TERM term, ts_region_id *out) {
  unsigned id;
  if (!enif_get_uint(env, term, &id)) return ts_nif_expected(env, "a region of the program", term);
  *out = id;
  return ts_tracer_check_region(&b->tracer, id);
}

static ts_status region_open(ErlNifEnv *env, ts_nif_builder *b, const ERL_NIF_TERM *args, ERL_NIF_TERM *out) {
  ts_region_id region, like = TS_NO_ID;
  ts_nif_types types;
  if (!enif_is_identical(args[1], ts_atom.undefined_)) TS_TRY(get_region(env, b, args[1], &like));
  TS_TRY(ts_nif_types_get(env, args[0], &types));
  ts_status status = ts_tracer_open(&b->tracer, ts_nif_types_of(&types), like, &region);
  size_t own = types.count;
  TS_VEC_FREE(&types);
  if (status) return status;
  ERL_NIF_TERM params = value_list(env, b, ts_graph_region(b->tracer.graph, region)->params.data, own);
  *out = enif_make_tuple2(env, enif_make_uint(env, region), params);
  return TS_SUCCESS;
}

ERL_NIF_TERM ts_nif_region_open(ErlNifEnv *env, int argc, const ERL_NIF_TERM argv[]) {
  /* region_open(Builder, [{Type, Shape}], LikeRegion | undefined) -> {Region, [Traced]}: and makes it the current one
   */
  (void)argc;
  return ts_nif_with_builder(env, argv, region_open);
}

static ts_status region_enter(ErlNifEnv *env, ts_nif_builder *b, const ERL_NIF_TERM *args, ERL_NIF_TERM *out) {
  ts_region_id region = TS_NO_ID;
  (void)out;
  TS_TRY(get_region(env, b, args[0], &region));
  return ts_tracer_enter(&b->tracer, region);
}

ERL_NIF_TERM ts_nif_region_enter(ErlNifEnv *env, int argc, const ERL_NIF_TERM argv[]) {
  /* region_enter(Builder, Region) -> ok: the current one again */
  (void)argc;
  return ts_nif_with_builder(env, argv, region_enter);
}

static ts_status region_leave(ErlNifEnv *env, ts_nif_builder *b, const ERL_NIF_TERM *args, ERL_NIF_TERM *out) {
  (void)env, (void)args, (void)out;
  return ts_tracer_leave(&b->tracer);
}

ERL_NIF_TERM ts_nif_region_leave(ErlNifEnv *env, int argc, const ERL_NIF_TERM argv[]) {
  /* region_leave(Builder) -> ok: back to the region around it */
  (void)argc;
  return ts_nif_with_builder(env, argv, region_leave);
}

static ts_status region_finish(ErlNifEnv *env, ts_nif_builder *b, const ERL_NIF_TERM *args, ERL_NIF_TERM *out) {
  operand_list results;
  (void)out;
  TS_TRY(get_operands(env, b, args[0], &results));
  ts_status status = ts_tracer_close(&b->tracer, operands_of(&results));
  free_operands(&results);
  return status;
}

ERL_NIF_TERM ts_nif_region_finish(ErlNifEnv *env, int argc, const ERL_NIF_TERM argv[]) {
  /* region_finish(Builder, [Operand]) -> ok: gives the current region its results and leaves it */
  (void)argc;
  return ts_nif_with_builder(env, argv, region_finish);
}

/* ---- ops with regions ---- */

static ts_status control(ErlNifEnv *env, ts_nif_builder *b, const ERL_NIF_TERM *args, ERL_NIF_TERM *out) {
  ts_region_id regions[2] = {TS_NO_ID, TS_NO_ID};
  operand_list operands;
  ts_value_id first;
  ts_opcode code = enif_is_identical(args[0], ts_atom.while_) ? TS_OP_WHILE : TS_OP_COND;
  size_t own;
  TS_TRY(get_region(env, b, args[1], &regions[0]));
  TS_TRY(get_region(env, b, args[2], &regions[1]));
  TS_TRY(get_operands(env, b, args[3], &operands));
  ts_status status = ts_tracer_control(&b->tracer, code, regions, operands_of(&operands), &first, &own);
  free_operands(&operands);
  if (!status) *out = result_list(env, b, first, own);
  return status;
}

ERL_NIF_TERM ts_nif_control(ErlNifEnv *env, int argc, const ERL_NIF_TERM argv[]) {
  /* control(Builder, while, Condition, Body, [Operand]) -> [Traced]
   * control(Builder, 'cond', True, False, [Predicate]) -> [Traced] */
  (void)argc;
  return ts_nif_with_builder(env, argv, control);
}

/* Adds an op whose results have the types of `args[1]`, on the operands of `args[2]`. */
static ts_status add_typed(ErlNifEnv *env, ts_nif_builder *b, ts_opcode code, ts_attrs *attrs, const ERL_NIF_TERM *args,
                           ERL_NIF_TERM *out) {
  ts_nif_types types;
  operand_list operands;
  ts_value_id first = 0;
  TS_TRY(ts_nif_types_get(env, args[1], &types));
  ts_status status = get_operands(env, b, args[2], &operands);
  if (!status) {
    status = ts_tracer_typed(&b->tracer, code, attrs, ts_nif_types_of(&types), operands_of(&operands), &first);
    free_operands(&operands);
  }
  if (!status) *out = result_list(env, b, first, types.count);
  TS_VEC_FREE(&types);
  return status;
}

static ts_status callback(ErlNifEnv *env, ts_nif_builder *b, const ERL_NIF_TERM *args, ERL_NIF_TERM *out) {
  ts_attrs attrs = {0};
  unsigned index;
  if (!enif_get_uint(env, args[0], &index)) return ts_nif_expected(env, "a callback's number", args[0]);
  attrs.callback.index = index;
  return add_typed(env, b, TS_OP_CALLBACK, &attrs, args, out);
}

static ts_status custom_call(ErlNifEnv *env, ts_nif_builder *b, const ERL_NIF_TERM *args, ERL_NIF_TERM *out) {
  ts_attrs attrs = {0};
  ErlNifBinary text;
  if (!enif_inspect_binary(env, args[0], &text)) return ts_nif_expected(env, "the text of a call", args[0]);
  ts_shape shape = {.rank = 1, .dims = {(int64_t)text.size}};
  TS_TRY(ts_buffer_create(ts_pool_default(), TS_U8, &shape, &attrs.custom.call));
  if (text.size > 0) memcpy(attrs.custom.call->data, text.data, text.size);
  ts_status status = add_typed(env, b, TS_OP_CUSTOM_CALL, &attrs, args, out);
  ts_buffer_release(attrs.custom.call);
  return status;
}

ERL_NIF_TERM ts_nif_custom_call(ErlNifEnv *env, int argc, const ERL_NIF_TERM argv[]) {
  /* custom_call(Builder, Text, [{Type, Shape}], [Operand]) -> [Traced]: results of a plugin's target */
  (void)argc;
  return ts_nif_with_builder(env, argv, custom_call);
}

ERL_NIF_TERM ts_nif_callback(ErlNifEnv *env, int argc, const ERL_NIF_TERM argv[]) {
  /* callback(Builder, Index, [{Type, Shape}], [Operand]) -> [Traced]: values that the caller of a run gives */
  (void)argc;
  return ts_nif_with_builder(env, argv, callback);
}

typedef TS_VEC(ts_value_id) id_list;

static ts_status get_ids(ErlNifEnv *env, ERL_NIF_TERM list, id_list *out) {
  ERL_NIF_TERM head, tail = list;
  unsigned id;
  *out = (id_list){0};
  while (enif_get_list_cell(env, tail, &head, &tail)) {
    if (!enif_get_uint(env, head, &id)) return ts_nif_expected(env, "a value's number", head);
    TS_TRY(TS_VEC_PUSH(out, id));
  }
  return enif_is_empty_list(env, tail) ? TS_SUCCESS : ts_nif_expected(env, "a list of values' numbers", list);
}

/* What `values` gives, or none for TS_NO_ID. */
static ERL_NIF_TERM copy_list(ErlNifEnv *env, ts_nif_builder *b, const ts_value_id *ids, size_t count) {
  ERL_NIF_TERM list = enif_make_list(env, 0);
  for (size_t i = count; i-- > 0;) {
    ERL_NIF_TERM copy = ids[i] == TS_NO_ID ? enif_make_atom(env, "none") : ts_nif_value_term(env, b, ids[i]);
    list = enif_make_list_cell(env, copy, list);
  }
  return list;
}

static ts_status inline_with(ErlNifEnv *env, ts_nif_builder *b, const ERL_NIF_TERM *args, ts_values sought,
                             ERL_NIF_TERM *out) {
  ts_region_id region = TS_NO_ID;
  operand_list arguments;
  ts_value_id *values;
  TS_TRY(get_region(env, b, args[0], &region));
  TS_TRY(get_operands(env, b, args[1], &arguments));
  ts_status status = ts_tracer_inline(&b->tracer, region, operands_of(&arguments), sought, &values);
  free_operands(&arguments);
  if (status) return status;
  size_t results = ts_graph_region(b->tracer.graph, region)->results.count;
  *out = enif_make_tuple2(env, value_list(env, b, values, results), copy_list(env, b, values + results, sought.count));
  ts_free(values);
  return TS_SUCCESS;
}

static ts_status inline_region(ErlNifEnv *env, ts_nif_builder *b, const ERL_NIF_TERM *args, ERL_NIF_TERM *out) {
  id_list sought;
  ts_status status = get_ids(env, args[2], &sought);
  if (!status) status = inline_with(env, b, args, (ts_values){sought.data, sought.count}, out);
  TS_VEC_FREE(&sought);
  return status;
}

ERL_NIF_TERM ts_nif_inline_region(ErlNifEnv *env, int argc, const ERL_NIF_TERM argv[]) {
  /* inline_region(Builder, Region, [Operand], [Id]) -> {[Traced], [Traced | none]}: copies the region's ops, with the
   * operands as arguments. Returns the copy's results, and the copies of the values with the given ids. */
  (void)argc;
  return ts_nif_with_builder(env, argv, inline_region);
}

static ts_status inline_program(ErlNifEnv *env, ts_nif_builder *b, const ERL_NIF_TERM *args, ERL_NIF_TERM *out) {
  ts_nif_builder *other;
  const ts_graph *program;
  operand_list arguments;
  ts_value_id *values;
  TS_TRY(ts_nif_builder_expect(env, args[0], &other));
  if (other == b) return ts_nif_expected(env, "another program", args[0]);
  TS_TRY(ts_nif_builder_graph(other, &program));
  TS_TRY(get_operands(env, b, args[1], &arguments));
  ts_status status = ts_tracer_inline_program(&b->tracer, program, operands_of(&arguments), &values);
  free_operands(&arguments);
  if (status) return status;
  *out = value_list(env, b, values, ts_graph_region(program, TS_ROOT)->results.count);
  ts_free(values);
  return TS_SUCCESS;
}

ERL_NIF_TERM ts_nif_inline_program(ErlNifEnv *env, int argc, const ERL_NIF_TERM argv[]) {
  /* inline_program(Builder, Program :: Builder, [Operand]) -> [Traced]: a copy of the finished program's ops */
  (void)argc;
  return ts_nif_with_builder(env, argv, inline_program);
}

/* ---- reading ---- */

static ERL_NIF_TERM op_term(ErlNifEnv *env, ts_nif_builder *b, const ts_op *op) {
  return enif_make_tuple4(env, ts_nif_opcode(op->code), value_list(env, b, op->operands, op->operand_count),
                          result_list(env, b, op->first_result, op->result_count), ts_nif_attrs(env, op));
}

static ts_status ops(ErlNifEnv *env, ts_nif_builder *b, const ERL_NIF_TERM *args, ERL_NIF_TERM *out) {
  unsigned from, to;
  if (!enif_get_uint(env, args[0], &from)) return ts_nif_expected(env, "a value's number", args[0]);
  if (!enif_get_uint(env, args[1], &to)) return ts_nif_expected(env, "a value's number", args[1]);
  const ts_graph *graph = b->tracer.graph;
  const ts_region *region = ts_graph_region(graph, b->tracer.current);
  ERL_NIF_TERM list = enif_make_list(env, 0);
  for (size_t i = region->ops.count; i-- > 0;) {
    const ts_op *op = ts_graph_op(graph, region->ops.data[i]);
    if (op->first_result < from) break;
    if (op->first_result <= to) list = enif_make_list_cell(env, op_term(env, b, op), list);
  }
  *out = list;
  return TS_SUCCESS;
}

ERL_NIF_TERM ts_nif_ops(ErlNifEnv *env, int argc, const ERL_NIF_TERM argv[]) {
  /* ops(Builder, FirstId, LastId) -> [{Op, [Operand], [Result], Attrs}] The ops of the current region that made the
   * values between, in order. */
  (void)argc;
  return ts_nif_with_builder(env, argv, ops);
}

static ts_status finish(ErlNifEnv *env, ts_nif_builder *b, const ERL_NIF_TERM *args, ERL_NIF_TERM *out) {
  operand_list results;
  const ts_tracer *t = &b->tracer;
  TS_TRY(get_operands(env, b, args[0], &results));
  ts_status status = ts_tracer_finish(&b->tracer, operands_of(&results));
  free_operands(&results);
  if (status) return status;
  *out = enif_make_list(env, 0);
  for (size_t i = t->used.count; i-- > 0;)
    *out = enif_make_list_cell(env, enif_make_uint(env, t->used.data[i] + 1), *out);
  return TS_SUCCESS;
}

ERL_NIF_TERM ts_nif_finish(ErlNifEnv *env, int argc, const ERL_NIF_TERM argv[]) {
  /* finish(Builder, [Operand]) -> [Index]
   * Sets the program's results. The indices say which of builder_new's tensors are its hidden arguments, from 1. */
  (void)argc;
  return ts_nif_with_builder(env, argv, finish);
}
