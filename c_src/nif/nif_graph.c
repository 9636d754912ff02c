#include "nif/nif_graph.h"

#include "base/map.h"
#include "ir/stablehlo.h"

#include <string.h>

static ErlNifResourceType *builder_type;

/* A value of the enclosing region, and the parameter that brings it in. */
typedef struct capture {
  ts_value_id outer, param;
} capture;

/* What is known of a region besides the graph's own record. */
typedef struct region_info {
  ts_region_id parent; /* where it was opened; TS_NO_ID for the root and for copies */
  uint32_t depth;      /* of regions around it */
  TS_VEC(capture) captures;
} region_info;

/* A tensor that the traced function's environment holds: a parameter once it is used. */
typedef struct hidden {
  ts_nif_tensor *tensor;
  ts_value_id value;
} hidden;

struct ts_nif_builder {
  ErlNifMutex *lock;
  ERL_NIF_TERM self; /* the builder as its caller has it, while the lock is held */
  ts_graph *graph;
  ts_region_id current;
  bool finished;
  TS_VEC(region_info) regions; /* by id; may be shorter than the graph's */
  TS_VEC(hidden) hidden;
  TS_VEC(uint32_t) used; /* indices into `hidden`, in the order of their parameters */
};

/* ---- life ---- */

static void builder_destroy(ErlNifEnv *env, void *object) {
  ts_nif_builder *b = object;
  (void)env;
  for (size_t i = 0; i < b->regions.count; i++) TS_VEC_FREE(&b->regions.data[i].captures);
  for (size_t i = 0; i < b->hidden.count; i++) enif_release_resource(b->hidden.data[i].tensor);
  TS_VEC_FREE(&b->regions);
  TS_VEC_FREE(&b->hidden);
  TS_VEC_FREE(&b->used);
  ts_graph_destroy(b->graph);
  if (b->lock) enif_mutex_destroy(b->lock);
}

bool ts_nif_builder_init(ErlNifEnv *env, ErlNifResourceFlags flags) {
  builder_type = enif_open_resource_type(env, NULL, "tessera_builder", builder_destroy, flags, NULL);
  return builder_type != NULL;
}

bool ts_nif_builder_get(ErlNifEnv *env, ERL_NIF_TERM term, ts_nif_builder **out) {
  return enif_get_resource(env, term, builder_type, (void **)out);
}

static ts_status get_builder(ErlNifEnv *env, ERL_NIF_TERM term, ts_nif_builder **out) {
  return ts_nif_builder_get(env, term, out) ? TS_SUCCESS : ts_nif_expected(env, "a program that is traced", term);
}

static ts_status add_hidden(ErlNifEnv *env, ts_nif_builder *b, ERL_NIF_TERM list) {
  ERL_NIF_TERM head;
  ts_nif_tensor *tensor;
  while (enif_get_list_cell(env, list, &head, &list)) {
    if (!ts_nif_tensor_get(env, head, &tensor)) return ts_nif_expected(env, "a tensor", head);
    TS_TRY(TS_VEC_PUSH(&b->hidden, ((hidden){tensor, TS_NO_ID})));
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
  if (!status) status = ts_graph_create(&b->graph);
  if (!status) status = TS_VEC_PUSH(&b->regions, (region_info){.parent = TS_NO_ID});
  if (!status) status = add_hidden(env, b, argv[0]);
  ERL_NIF_TERM term = status ? ts_nif_error(env, status) : enif_make_resource(env, b);
  if (b) enif_release_resource(b);
  return term;
}

ts_status ts_nif_builder_of(ErlNifEnv *env, ts_graph *graph, ERL_NIF_TERM *out) {
  ts_nif_builder *b = NULL;
  ts_status status = new_builder(&b);
  if (!status) {
    b->graph = graph;
    b->finished = true;
    *out = enif_make_resource(env, b);
  } else {
    ts_graph_destroy(graph);
  }
  if (b) enif_release_resource(b);
  return status;
}

ts_status ts_nif_builder_graph(ts_nif_builder *b, const ts_graph **out) {
  if (!b->finished) return ts_error(TS_FAILED_PRECONDITION, "the program is still being traced");
  *out = b->graph;
  return TS_SUCCESS;
}

static ts_status check_tracing(const ts_nif_builder *b) {
  if (!b->finished) return TS_SUCCESS;
  return ts_error(TS_FAILED_PRECONDITION, "a traced value was used after its function had returned");
}

/* ---- values and regions ---- */

/* The record of a region; the graph may have more regions than we have records. */
static ts_status info_of(ts_nif_builder *b, ts_region_id region, region_info **out) {
  while (b->regions.count <= region) TS_TRY(TS_VEC_PUSH(&b->regions, (region_info){.parent = TS_NO_ID}));
  *out = &b->regions.data[region];
  return TS_SUCCESS;
}

/* Whether `region` is the current one or around it. */
static bool is_open(const ts_nif_builder *b, ts_region_id region) {
  for (ts_region_id r = b->current; r != TS_NO_ID; r = r < b->regions.count ? b->regions.data[r].parent : TS_NO_ID)
    if (r == region) return true;
  return false;
}

static ts_status bring_in(ts_nif_builder *b, ts_region_id region, ts_value_id outer, ts_value_id *out) {
  region_info *info = &b->regions.data[region];
  ts_value v = *ts_graph_value(b->graph, outer);
  for (size_t i = 0; i < info->captures.count; i++) {
    if (info->captures.data[i].outer != outer) continue;
    *out = info->captures.data[i].param;
    return TS_SUCCESS;
  }
  /* Room first: a parameter without its record would be one too many. */
  TS_TRY(TS_VEC_RESERVE(&info->captures, info->captures.count + 1));
  TS_TRY(ts_graph_add_param(b->graph, region, v.dtype, v.shape, out));
  info->captures.data[info->captures.count++] = (capture){outer, *out};
  return TS_SUCCESS;
}

/* `value` as a value of `region`, which is inside its own or the same. */
static ts_status resolve(ts_nif_builder *b, ts_region_id region, ts_value_id value, ts_value_id *out) {
  ts_value v = *ts_graph_value(b->graph, value);
  ts_scalar scalar;
  ts_region_id through[TS_MAX_NESTING + 1]; /* from `region` outwards */
  size_t count = 0;
  *out = value;
  if (v.region == region) return TS_SUCCESS;
  if (ts_graph_is_constant(b->graph, value, &scalar))
    return ts_graph_constant(b->graph, region, v.dtype, v.shape, scalar, out);
  for (; region != v.region; region = b->regions.data[region].parent) {
    if (region == TS_NO_ID) return ts_error(TS_INTERNAL, "a value's region does not enclose its user");
    through[count++] = region;
  }
  while (count-- > 0) TS_TRY(bring_in(b, through[count], *out, out));
  return TS_SUCCESS;
}

static ts_status use_value(ts_nif_builder *b, ts_value_id value, ts_value_id *out) {
  if (value >= b->graph->values.count) return ts_error(TS_INVALID_ARGUMENT, "no value %u in this program", value);
  if (!is_open(b, ts_graph_value(b->graph, value)->region))
    return ts_error(TS_INVALID_ARGUMENT, "a traced value was used outside of the function that made it");
  return resolve(b, b->current, value, out);
}

/* The reference is the caller's own: a fresh one for each value would be work for each garbage collection. */
static ERL_NIF_TERM value_term(ErlNifEnv *env, ts_nif_builder *b, ts_value_id id) {
  const ts_value *v = ts_graph_value(b->graph, id);
  ERL_NIF_TERM ref = enif_make_list_cell(env, b->self, enif_make_uint(env, id));
  return enif_make_tuple4(env, ts_atom.tessera_, ref, ts_nif_dtype(v->dtype), ts_nif_shape(env, v->shape));
}

/* Of an op with one result the value, of another one a list of its values. */
static ERL_NIF_TERM results_term(ErlNifEnv *env, ts_nif_builder *b, ts_value_id first) {
  uint32_t count = ts_graph_op(b->graph, ts_graph_value(b->graph, first)->op)->result_count;
  if (count == 1) return value_term(env, b, first);
  ERL_NIF_TERM list = enif_make_list(env, 0);
  for (uint32_t i = count; i-- > 0;) list = enif_make_list_cell(env, value_term(env, b, first + i), list);
  return list;
}

/* ---- operands ---- */

/* `buffer` is in host memory. */
static ts_status add_literal(ts_nif_builder *b, ts_buffer *buffer, ts_value_id *out) {
  if (ts_shape_elements(&buffer->shape) == 1)
    return ts_graph_constant(b->graph, b->current, buffer->dtype, &buffer->shape,
                             ts_scalar_load(buffer->dtype, buffer->data), out);
  ts_attrs attrs = {.literal = {.buffer = buffer}};
  return ts_graph_add_op(b->graph, b->current, TS_OP_LITERAL, NULL, 0, &attrs, out);
}

/* A tensor of the environment is a hidden parameter of the root; any other one is a literal. */
static ts_status use_tensor(ts_nif_builder *b, ts_nif_tensor *tensor, ts_value_id *out) {
  ts_buffer *buffer = tensor->buffer;
  for (size_t i = 0; i < b->hidden.count; i++) {
    hidden *h = &b->hidden.data[i];
    if (h->tensor != tensor) continue;
    if (h->value == TS_NO_ID) {
      ts_value_id param;
      TS_TRY(TS_VEC_RESERVE(&b->used, b->used.count + 1));
      TS_TRY(ts_graph_add_param(b->graph, TS_ROOT, buffer->dtype, &buffer->shape, &param));
      b->used.data[b->used.count++] = (uint32_t)i;
      h->value = param;
    }
    return resolve(b, b->current, h->value, out);
  }
  TS_TRY(ts_device_fetch(buffer, &buffer));
  ts_status status = add_literal(b, buffer, out);
  ts_buffer_release(buffer);
  return status;
}

static ts_status get_traced(ErlNifEnv *env, ts_nif_builder *b, ERL_NIF_TERM term, ERL_NIF_TERM ref, ts_value_id *out) {
  ERL_NIF_TERM head, tail;
  ts_nif_builder *owner;
  unsigned id;
  if (!enif_get_list_cell(env, ref, &head, &tail) || !ts_nif_builder_get(env, head, &owner) ||
      !enif_get_uint(env, tail, &id))
    return ts_nif_expected(env, "a tensor or a number", term);
  if (owner != b) return ts_error(TS_INVALID_ARGUMENT, "a traced value was used outside of the function that made it");
  return use_value(b, id, out);
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
  *out = (ts_operand){.is_number = true, .shape = &ts_shape_scalar};
  if (ts_nif_get_number(env, term, &out->number)) return TS_SUCCESS;
  if (!ts_nif_tessera_get(env, term, &ref)) return ts_nif_expected(env, "a tensor or a number", term);
  out->is_number = false;
  TS_TRY(get_value(env, b, term, ref, &out->value));
  const ts_value *v = ts_graph_value(b->graph, out->value);
  out->dtype = v->dtype;
  out->shape = v->shape;
  return TS_SUCCESS;
}

enum { FEW = 4 };

/* A list of operands, in `few` when they fit, else the caller frees *out. */
static ts_status get_operands(ErlNifEnv *env, ts_nif_builder *b, ERL_NIF_TERM list, ts_operand few[FEW],
                              ts_operand **out, size_t *count) {
  unsigned length;
  ERL_NIF_TERM head;
  *out = few;
  if (!enif_get_list_length(env, list, &length)) return ts_nif_expected(env, "a list of operands", list);
  if (length > FEW) TS_TRY(ts_alloc_array(length, sizeof **out, (void **)out));
  for (*count = 0; *count < length && enif_get_list_cell(env, list, &head, &list); ++*count) {
    ts_status status = get_operand(env, b, head, &(*out)[*count]);
    if (!status) continue;
    if (*out != few) ts_free(*out);
    *out = few;
    return status;
  }
  return TS_SUCCESS;
}

/* Numbers become scalars of their own types. */
static ts_status place_own(ts_nif_builder *b, const ts_operand *o, ts_value_id *out) {
  ts_dtype dtype = o->is_number ? ts_number_dtype(&o->number) : o->dtype;
  return ts_op_place(b->graph, b->current, o, dtype, o->shape, out);
}

/* A list of operands as values of the current region; the caller frees *out. */
static ts_status get_values(ErlNifEnv *env, ts_nif_builder *b, ERL_NIF_TERM list, ts_value_id **out, size_t *count) {
  ts_operand few[FEW], *operands;
  *out = NULL;
  TS_TRY(get_operands(env, b, list, few, &operands, count));
  ts_status status = TS_NEW_ARRAY(*count, out);
  for (size_t i = 0; !status && i < *count; i++) status = place_own(b, &operands[i], &(*out)[i]);
  if (operands != few) ts_free(operands);
  if (status) {
    ts_free(*out);
    *out = NULL;
  }
  return status;
}

/* ---- ops ---- */

/* A combiner is called once per element: what it uses must be its own. */
static ts_status check_combiner(ts_nif_builder *b, ts_opcode code, const ts_attrs *attrs) {
  region_info *info;
  if (code != TS_OP_REDUCE || attrs->reduce.region >= b->graph->regions.count) return TS_SUCCESS;
  TS_TRY(info_of(b, attrs->reduce.region, &info));
  if (info->captures.count == 0) return TS_SUCCESS;
  return ts_error(TS_INVALID_ARGUMENT, "reduce: the function uses a value from outside, expected only its arguments "
                                       "and numbers");
}

static ts_status add_op(ErlNifEnv *env, ts_nif_builder *b, ts_opcode code, ERL_NIF_TERM operand_list,
                        ERL_NIF_TERM attr_term, ts_value_id *out) {
  ts_operand few[FEW], *operands;
  ts_attrs attrs;
  size_t count;
  TS_TRY(check_tracing(b));
  TS_TRY(ts_nif_get_attrs(env, code, attr_term, &attrs));
  TS_TRY(check_combiner(b, code, &attrs));
  TS_TRY(get_operands(env, b, operand_list, few, &operands, &count));
  ts_status status = ts_op_build(b->graph, b->current, code, operands, count, &attrs, out);
  if (operands != few) ts_free(operands);
  return status;
}

ERL_NIF_TERM ts_nif_builder_op(ErlNifEnv *env, ts_nif_builder *b, ts_opcode code, const ERL_NIF_TERM argv[]) {
  ts_value_id value;
  enif_mutex_lock(b->lock);
  b->self = argv[0];
  ts_status status = add_op(env, b, code, argv[2], argv[3], &value);
  ERL_NIF_TERM term = status ? ts_nif_error(env, status) : results_term(env, b, value);
  enif_mutex_unlock(b->lock);
  return term;
}

/* The shape of all NIFs below: under the lock, with a status and a term. */
typedef ts_status (*builder_fn)(ErlNifEnv *env, ts_nif_builder *b, const ERL_NIF_TERM *args, ERL_NIF_TERM *out);

static ERL_NIF_TERM with_builder(ErlNifEnv *env, const ERL_NIF_TERM argv[], builder_fn fn) {
  ts_nif_builder *b;
  ERL_NIF_TERM term = ts_atom.ok_;
  TS_NIF_TRY(env, get_builder(env, argv[0], &b));
  enif_mutex_lock(b->lock);
  b->self = argv[0];
  ts_status status = check_tracing(b);
  if (!status) status = fn(env, b, argv + 1, &term);
  enif_mutex_unlock(b->lock);
  return status ? ts_nif_error(env, status) : term;
}

static ts_status param(ErlNifEnv *env, ts_nif_builder *b, const ERL_NIF_TERM *args, ERL_NIF_TERM *out) {
  ts_dtype dtype;
  ts_shape shape;
  ts_value_id value;
  TS_TRY(ts_nif_get_dtype(env, args[0], &dtype));
  TS_TRY(ts_nif_get_shape(env, args[1], &shape));
  TS_TRY(ts_graph_add_param(b->graph, TS_ROOT, dtype, &shape, &value));
  *out = value_term(env, b, value);
  return TS_SUCCESS;
}

ERL_NIF_TERM ts_nif_param(ErlNifEnv *env, int argc, const ERL_NIF_TERM argv[]) {
  /* param(Builder, Type, Shape) -> Traced */
  (void)argc;
  return with_builder(env, argv, param);
}

static ts_status value(ErlNifEnv *env, ts_nif_builder *b, const ERL_NIF_TERM *args, ERL_NIF_TERM *out) {
  ts_operand operand;
  ts_value_id id;
  TS_TRY(get_operand(env, b, args[0], &operand));
  TS_TRY(place_own(b, &operand, &id));
  *out = value_term(env, b, id);
  return TS_SUCCESS;
}

ERL_NIF_TERM ts_nif_value(ErlNifEnv *env, int argc, const ERL_NIF_TERM argv[]) {
  /* value(Builder, Operand) -> Traced: the operand as a value of the current region */
  (void)argc;
  return with_builder(env, argv, value);
}

static ERL_NIF_TERM value_list(ErlNifEnv *env, ts_nif_builder *b, const ts_value_id *ids, size_t count) {
  ERL_NIF_TERM list = enif_make_list(env, 0);
  for (size_t i = count; i-- > 0;) list = enif_make_list_cell(env, value_term(env, b, ids[i]), list);
  return list;
}

/* ---- regions ---- */

static ts_status add_param_like(ErlNifEnv *env, ts_nif_builder *b, ts_region_id region, ERL_NIF_TERM term) {
  const ERL_NIF_TERM *f;
  int count;
  ts_dtype dtype;
  ts_shape shape;
  ts_value_id id;
  if (!enif_get_tuple(env, term, &count, &f) || count != 2) return ts_nif_expected(env, "{Type, Shape}", term);
  TS_TRY(ts_nif_get_dtype(env, f[0], &dtype));
  TS_TRY(ts_nif_get_shape(env, f[1], &shape));
  return ts_graph_add_param(b->graph, region, dtype, &shape, &id);
}

static ts_status get_region(ErlNifEnv *env, ts_nif_builder *b, ERL_NIF_TERM term, ts_region_id *out) {
  unsigned id;
  if (!enif_get_uint(env, term, &id) || id == TS_ROOT || id >= b->graph->regions.count)
    return ts_nif_expected(env, "a region of the program", term);
  region_info *info;
  *out = id;
  return info_of(b, id, &info);
}

/* Takes over what another region captured, in the same order, so that both can hang on one op. */
static ts_status capture_like(ts_nif_builder *b, ts_region_id region, ts_region_id like, size_t from) {
  region_info *model;
  ts_value_id id;
  TS_TRY(info_of(b, like, &model));
  for (size_t i = from; i < model->captures.count; i++) TS_TRY(bring_in(b, region, model->captures.data[i].outer, &id));
  return TS_SUCCESS;
}

static ts_status region_open(ErlNifEnv *env, ts_nif_builder *b, const ERL_NIF_TERM *args, ERL_NIF_TERM *out) {
  ts_region_id region, like = TS_NO_ID;
  region_info *info;
  ERL_NIF_TERM head, tail = args[0];
  uint32_t depth = b->regions.data[b->current].depth + 1;
  if (depth > TS_MAX_NESTING)
    return ts_error(TS_OUT_OF_RANGE, "functions of control ops are nested more than %d deep", TS_MAX_NESTING);
  TS_TRY(ts_graph_add_region(b->graph, &region));
  TS_TRY(info_of(b, region, &info));
  info->parent = b->current;
  info->depth = depth;
  while (enif_get_list_cell(env, tail, &head, &tail)) TS_TRY(add_param_like(env, b, region, head));
  size_t own = ts_graph_region(b->graph, region)->params.count;
  if (!enif_is_identical(args[1], ts_atom.undefined_)) {
    TS_TRY(get_region(env, b, args[1], &like));
    TS_TRY(capture_like(b, region, like, 0));
  }
  b->current = region;
  ERL_NIF_TERM params = value_list(env, b, ts_graph_region(b->graph, region)->params.data, own);
  *out = enif_make_tuple2(env, enif_make_uint(env, region), params);
  return TS_SUCCESS;
}

ERL_NIF_TERM ts_nif_region_open(ErlNifEnv *env, int argc, const ERL_NIF_TERM argv[]) {
  /* region_open(Builder, [{Type, Shape}], LikeRegion | undefined) -> {Region, [Traced]}: and makes it the current one
   */
  (void)argc;
  return with_builder(env, argv, region_open);
}

static ts_status region_enter(ErlNifEnv *env, ts_nif_builder *b, const ERL_NIF_TERM *args, ERL_NIF_TERM *out) {
  ts_region_id region = TS_NO_ID;
  (void)out;
  TS_TRY(get_region(env, b, args[0], &region));
  if (b->regions.data[region].parent != b->current)
    return ts_error(TS_FAILED_PRECONDITION, "region %u was not opened in the current one", region);
  b->current = region;
  return TS_SUCCESS;
}

ERL_NIF_TERM ts_nif_region_enter(ErlNifEnv *env, int argc, const ERL_NIF_TERM argv[]) {
  /* region_enter(Builder, Region) -> ok: the current one again */
  (void)argc;
  return with_builder(env, argv, region_enter);
}

static ts_status leave(ts_nif_builder *b) {
  ts_region_id parent = b->current < b->regions.count ? b->regions.data[b->current].parent : TS_NO_ID;
  if (parent == TS_NO_ID) return ts_error(TS_FAILED_PRECONDITION, "no region is open");
  b->current = parent;
  return TS_SUCCESS;
}

static ts_status region_leave(ErlNifEnv *env, ts_nif_builder *b, const ERL_NIF_TERM *args, ERL_NIF_TERM *out) {
  (void)env, (void)args, (void)out;
  return leave(b);
}

ERL_NIF_TERM ts_nif_region_leave(ErlNifEnv *env, int argc, const ERL_NIF_TERM argv[]) {
  /* region_leave(Builder) -> ok: back to the region around it */
  (void)argc;
  return with_builder(env, argv, region_leave);
}

static ts_status region_finish(ErlNifEnv *env, ts_nif_builder *b, const ERL_NIF_TERM *args, ERL_NIF_TERM *out) {
  ts_value_id *values;
  size_t count;
  (void)out;
  TS_TRY(get_values(env, b, args[0], &values, &count));
  ts_status status = ts_graph_set_results(b->graph, b->current, values, count);
  ts_free(values);
  if (status) return status;
  return leave(b);
}

ERL_NIF_TERM ts_nif_region_finish(ErlNifEnv *env, int argc, const ERL_NIF_TERM argv[]) {
  /* region_finish(Builder, [Operand]) -> ok: gives the current region its results and leaves it */
  (void)argc;
  return with_builder(env, argv, region_finish);
}

/* ---- control ops ---- */

/* What a while captures stays as it is: the body returns it. */
static ts_status pass_captures_on(ts_nif_builder *b, ts_region_id body) {
  ts_region *region = ts_graph_region(b->graph, body);
  size_t captured = b->regions.data[body].captures.count, count = region->results.count;
  ts_value_id *results;
  TS_TRY(TS_NEW_ARRAY(count + captured, &results));
  memcpy(results, region->results.data, count * sizeof *results);
  for (size_t i = 0; i < captured; i++) results[count + i] = b->regions.data[body].captures.data[i].param;
  ts_status status = ts_graph_set_results(b->graph, body, results, count + captured);
  ts_free(results);
  return status;
}

/* The operands, and after them what the regions captured. */
static ts_status with_captures(ts_nif_builder *b, ts_region_id region, ts_value_id **values, size_t *count) {
  size_t captured = b->regions.data[region].captures.count;
  TS_TRY(ts_realloc_array(*count + captured, sizeof **values, (void **)values));
  for (size_t i = 0; i < captured; i++) (*values)[*count + i] = b->regions.data[region].captures.data[i].outer;
  *count += captured;
  return TS_SUCCESS;
}

static ts_status add_control(ts_nif_builder *b, ts_opcode code, const ts_region_id regions[2], ts_value_id **values,
                             size_t *count, ts_value_id *out) {
  ts_attrs attrs = {.regions = {{regions[0], regions[1]}}};
  /* The second region began with the first one's captures; the first now gets the second's further ones. */
  TS_TRY(capture_like(b, regions[0], regions[1], b->regions.data[regions[0]].captures.count));
  if (code == TS_OP_WHILE) TS_TRY(pass_captures_on(b, regions[1]));
  TS_TRY(with_captures(b, regions[1], values, count));
  return ts_graph_add_op(b->graph, b->current, code, *values, *count, &attrs, out);
}

/* A cond's predicate may be of any type. */
static ts_status get_control_operands(ErlNifEnv *env, ts_nif_builder *b, ts_opcode code, ERL_NIF_TERM list,
                                      ts_value_id **out, size_t *count) {
  if (code == TS_OP_WHILE) return get_values(env, b, list, out, count);
  ERL_NIF_TERM head;
  ts_operand predicate;
  if (!enif_get_list_cell(env, list, &head, &list)) return ts_nif_expected(env, "a predicate", list);
  TS_TRY(get_operand(env, b, head, &predicate));
  TS_TRY(TS_NEW_ARRAY(1, out));
  *count = 1;
  return ts_error_context(ts_op_predicate(b->graph, b->current, &predicate, *out), "cond");
}

static ts_status control(ErlNifEnv *env, ts_nif_builder *b, const ERL_NIF_TERM *args, ERL_NIF_TERM *out) {
  ts_region_id regions[2] = {TS_NO_ID, TS_NO_ID};
  ts_value_id *values = NULL, first;
  ts_opcode code = enif_is_identical(args[0], ts_atom.while_) ? TS_OP_WHILE : TS_OP_COND;
  size_t count = 0;
  TS_TRY(get_region(env, b, args[1], &regions[0]));
  TS_TRY(get_region(env, b, args[2], &regions[1]));
  size_t own = ts_graph_region(b->graph, regions[1])->results.count;
  ts_status status = get_control_operands(env, b, code, args[3], &values, &count);
  if (!status) status = add_control(b, code, regions, &values, &count, &first);
  ts_free(values);
  if (status) return status;
  ERL_NIF_TERM list = enif_make_list(env, 0);
  for (size_t i = own; i-- > 0;) list = enif_make_list_cell(env, value_term(env, b, first + (ts_value_id)i), list);
  *out = list;
  return TS_SUCCESS;
}

ERL_NIF_TERM ts_nif_control(ErlNifEnv *env, int argc, const ERL_NIF_TERM argv[]) {
  /* control(Builder, while, Condition, Body, [Operand]) -> [Traced]
   * control(Builder, 'cond', True, False, [Predicate]) -> [Traced] */
  (void)argc;
  return with_builder(env, argv, control);
}

/* A finished region that returns a zero of each type. */
static ts_status add_types(ErlNifEnv *env, ts_nif_builder *b, ERL_NIF_TERM list, ts_region_id *out) {
  ERL_NIF_TERM head;
  const ERL_NIF_TERM *pair;
  int arity;
  TS_VEC(ts_value_id) values = {0};
  ts_status status = ts_graph_add_region(b->graph, out);
  while (!status && enif_get_list_cell(env, list, &head, &list)) {
    ts_dtype dtype;
    ts_shape shape;
    ts_value_id value;
    if (!enif_get_tuple(env, head, &arity, &pair) || arity != 2) status = ts_nif_expected(env, "{Type, Shape}", head);
    if (!status) status = ts_nif_get_dtype(env, pair[0], &dtype);
    if (!status) status = ts_nif_get_shape(env, pair[1], &shape);
    if (!status) status = ts_graph_constant(b->graph, *out, dtype, &shape, (ts_scalar){0}, &value);
    if (!status) status = TS_VEC_PUSH(&values, value);
  }
  if (!status) status = ts_graph_set_results(b->graph, *out, values.data, values.count);
  TS_VEC_FREE(&values);
  return status;
}

/* Adds an op whose region `types` says the types of its results. */
static ts_status add_typed(ErlNifEnv *env, ts_nif_builder *b, ts_opcode code, const ts_attrs *attrs,
                           ERL_NIF_TERM operands, ts_value_id *out) {
  ts_value_id *values;
  size_t count;
  TS_TRY(get_values(env, b, operands, &values, &count));
  ts_status status = ts_graph_add_op(b->graph, b->current, code, values, count, attrs, out);
  ts_free(values);
  return status;
}

static ERL_NIF_TERM typed_results(ErlNifEnv *env, ts_nif_builder *b, ts_region_id types, ts_value_id first) {
  ERL_NIF_TERM list = enif_make_list(env, 0);
  for (size_t i = ts_graph_region(b->graph, types)->results.count; i-- > 0;)
    list = enif_make_list_cell(env, value_term(env, b, first + (ts_value_id)i), list);
  return list;
}

static ts_status callback(ErlNifEnv *env, ts_nif_builder *b, const ERL_NIF_TERM *args, ERL_NIF_TERM *out) {
  ts_value_id first = 0;
  ts_attrs attrs = {0};
  unsigned index;
  if (!enif_get_uint(env, args[0], &index)) return ts_nif_expected(env, "a callback's number", args[0]);
  attrs.callback.index = index;
  TS_TRY(add_types(env, b, args[1], &attrs.callback.types));
  TS_TRY(add_typed(env, b, TS_OP_CALLBACK, &attrs, args[2], &first));
  *out = typed_results(env, b, attrs.callback.types, first);
  return TS_SUCCESS;
}

static ts_status custom_call(ErlNifEnv *env, ts_nif_builder *b, const ERL_NIF_TERM *args, ERL_NIF_TERM *out) {
  ts_value_id first = 0;
  ts_attrs attrs = {0};
  ErlNifBinary text;
  if (!enif_inspect_binary(env, args[0], &text)) return ts_nif_expected(env, "the text of a call", args[0]);
  TS_TRY(add_types(env, b, args[1], &attrs.custom.types));
  ts_shape shape = {.rank = 1, .dims = {(int64_t)text.size}};
  TS_TRY(ts_buffer_create(ts_pool_default(), TS_U8, &shape, &attrs.custom.call));
  if (text.size > 0) memcpy(attrs.custom.call->data, text.data, text.size);
  ts_status status = add_typed(env, b, TS_OP_CUSTOM_CALL, &attrs, args[2], &first);
  ts_buffer_release(attrs.custom.call);
  if (!status) *out = typed_results(env, b, attrs.custom.types, first);
  return status;
}

ERL_NIF_TERM ts_nif_custom_call(ErlNifEnv *env, int argc, const ERL_NIF_TERM argv[]) {
  /* custom_call(Builder, Text, [{Type, Shape}], [Operand]) -> [Traced]: what a plugin's target makes of the operands */
  (void)argc;
  return with_builder(env, argv, custom_call);
}

ERL_NIF_TERM ts_nif_callback(ErlNifEnv *env, int argc, const ERL_NIF_TERM argv[]) {
  /* callback(Builder, Index, [{Type, Shape}], [Operand]) -> [Traced]: results of those types, from the caller of a run
   */
  (void)argc;
  return with_builder(env, argv, callback);
}

static ts_status inline_region(ErlNifEnv *env, ts_nif_builder *b, const ERL_NIF_TERM *args, ERL_NIF_TERM *out) {
  ts_region_id source = TS_NO_ID;
  ts_value_id *values, *map = NULL;
  size_t count;
  TS_TRY(get_region(env, b, args[0], &source));
  TS_TRY(get_values(env, b, args[1], &values, &count));
  ts_status status = TS_NEW_ARRAY(b->graph->values.count, &map);
  const ts_region *region = ts_graph_region(b->graph, source);
  if (!status && region->params.count != count)
    status = ts_error(TS_INTERNAL, "the region takes %zu values, got %zu", region->params.count, count);
  for (size_t i = 0; !status && i < count; i++) map[region->params.data[i]] = values[i];
  if (!status) status = ts_graph_copy_ops(b->graph, source, b->graph, b->current, map);
  if (!status) {
    region = ts_graph_region(b->graph, source);
    *out = enif_make_list(env, 0);
    for (size_t i = region->results.count; i-- > 0;)
      *out = enif_make_list_cell(env, value_term(env, b, map[region->results.data[i]]), *out);
  }
  ts_free(values);
  ts_free(map);
  return status;
}

ERL_NIF_TERM ts_nif_inline_region(ErlNifEnv *env, int argc, const ERL_NIF_TERM argv[]) {
  /* inline_region(Builder, Region, [Operand]) -> [Traced]: a copy of its ops on these arguments */
  (void)argc;
  return with_builder(env, argv, inline_region);
}

/* ---- reading ---- */

static ERL_NIF_TERM op_term(ErlNifEnv *env, ts_nif_builder *b, const ts_op *op) {
  ERL_NIF_TERM results = enif_make_list(env, 0);
  for (uint32_t i = op->result_count; i-- > 0;)
    results = enif_make_list_cell(env, value_term(env, b, op->first_result + i), results);
  return enif_make_tuple4(env, ts_nif_opcode(op->code), value_list(env, b, op->operands, op->operand_count), results,
                          ts_nif_attrs(env, op));
}

static ts_status ops(ErlNifEnv *env, ts_nif_builder *b, const ERL_NIF_TERM *args, ERL_NIF_TERM *out) {
  unsigned from, to;
  if (!enif_get_uint(env, args[0], &from)) return ts_nif_expected(env, "a value's number", args[0]);
  if (!enif_get_uint(env, args[1], &to)) return ts_nif_expected(env, "a value's number", args[1]);
  const ts_region *region = ts_graph_region(b->graph, b->current);
  ERL_NIF_TERM list = enif_make_list(env, 0);
  for (size_t i = region->ops.count; i-- > 0;) {
    const ts_op *op = ts_graph_op(b->graph, region->ops.data[i]);
    if (op->first_result < from) break;
    if (op->first_result <= to) list = enif_make_list_cell(env, op_term(env, b, op), list);
  }
  *out = list;
  return TS_SUCCESS;
}

ERL_NIF_TERM ts_nif_ops(ErlNifEnv *env, int argc, const ERL_NIF_TERM argv[]) {
  /* ops(Builder, FirstId, LastId) -> [{Op, [Operand], [Result], Attrs}]
   * Those of the current region that made the values between, in order. */
  (void)argc;
  return with_builder(env, argv, ops);
}

static ts_status finish(ErlNifEnv *env, ts_nif_builder *b, const ERL_NIF_TERM *args, ERL_NIF_TERM *out) {
  ts_value_id *values;
  size_t count;
  if (b->current != TS_ROOT) return ts_error(TS_FAILED_PRECONDITION, "a region is still open");
  TS_TRY(get_values(env, b, args[0], &values, &count));
  ts_status status = ts_graph_set_results(b->graph, TS_ROOT, values, count);
  ts_free(values);
  if (status) return status;
  b->finished = true;
  *out = enif_make_list(env, 0);
  for (size_t i = b->used.count; i-- > 0;)
    *out = enif_make_list_cell(env, enif_make_uint(env, b->used.data[i] + 1), *out);
  return TS_SUCCESS;
}

ERL_NIF_TERM ts_nif_finish(ErlNifEnv *env, int argc, const ERL_NIF_TERM argv[]) {
  /* finish(Builder, [Operand]) -> [Index]
   * Sets the program's results. The indices say which of builder_new's tensors are its hidden arguments, from 1. */
  (void)argc;
  return with_builder(env, argv, finish);
}

static ERL_NIF_TERM print_finished(ErlNifEnv *env, ERL_NIF_TERM term, ts_status (*print)(const ts_graph *, ts_text *)) {
  ts_nif_builder *b;
  const ts_graph *graph;
  ts_text text = {0};
  TS_NIF_TRY(env, get_builder(env, term, &b));
  TS_NIF_TRY(env, ts_nif_builder_graph(b, &graph));
  return ts_nif_text(env, print(graph, &text), &text);
}

ERL_NIF_TERM ts_nif_graph_text(ErlNifEnv *env, int argc, const ERL_NIF_TERM argv[]) {
  /* graph_text(Builder) -> binary(): of a finished program */
  (void)argc;
  return print_finished(env, argv[0], ts_graph_print);
}

/* Ops whose text is printed in the time that a hop to a dirty scheduler may take. */
enum { SHORT_TEXT = 300 };

ERL_NIF_TERM ts_nif_described(ErlNifEnv *env, const ts_text *text) {
  ts_hash128 hash = ts_hash(text->data, text->length);
  return enif_make_tuple2(env, ts_nif_binary(env, text->data, text->length),
                          ts_nif_binary(env, (const char *)&hash, sizeof(hash)));
}

static ERL_NIF_TERM describe(ErlNifEnv *env, int argc, const ERL_NIF_TERM argv[]) {
  ts_nif_builder *b;
  const ts_graph *graph;
  ts_text text = {0};
  (void)argc;
  TS_NIF_TRY(env, get_builder(env, argv[0], &b));
  TS_NIF_TRY(env, ts_nif_builder_graph(b, &graph));
  ts_status status = ts_graph_print(graph, &text);
  if (status) {
    ts_text_deinit(&text);
    return ts_nif_error(env, status);
  }
  ERL_NIF_TERM term = ts_nif_described(env, &text);
  ts_text_deinit(&text);
  return term;
}

ERL_NIF_TERM ts_nif_describe(ErlNifEnv *env, int argc, const ERL_NIF_TERM argv[]) {
  /* describe(Builder) -> {Text :: binary(), Hash :: <<_:128>>}: the text of a finished program and what tells it from
   * others. Goes to a dirty scheduler when it is long. */
  ts_nif_builder *b;
  const ts_graph *graph;
  TS_NIF_TRY(env, get_builder(env, argv[0], &b));
  TS_NIF_TRY(env, ts_nif_builder_graph(b, &graph));
  if (graph->ops.count <= SHORT_TEXT) return describe(env, argc, argv);
  return enif_schedule_nif(env, "describe", ERL_NIF_DIRTY_JOB_CPU_BOUND, describe, argc, argv);
}

ERL_NIF_TERM ts_nif_graph_stablehlo(ErlNifEnv *env, int argc, const ERL_NIF_TERM argv[]) {
  /* graph_stablehlo(Builder) -> binary(): the same as a module of StableHLO */
  (void)argc;
  return print_finished(env, argv[0], ts_graph_print_stablehlo);
}

ERL_NIF_TERM ts_nif_parse(ErlNifEnv *env, int argc, const ERL_NIF_TERM argv[]) {
  /* parse(Text :: binary()) -> Builder: a finished program from its text */
  ErlNifBinary text;
  ERL_NIF_TERM term;
  ts_graph *graph;
  (void)argc;
  if (!enif_inspect_binary(env, argv[0], &text)) return ts_nif_error(env, ts_nif_expected(env, "a binary", argv[0]));
  TS_NIF_TRY(env, ts_graph_parse((const char *)text.data, text.size, &graph));
  TS_NIF_TRY(env, ts_nif_builder_of(env, graph, &term));
  return term;
}
