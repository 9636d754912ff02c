#include "nif/nif_eager.h"

#include "base/map.h"
#include "nif/nif_graph.h"

#include <string.h>

/* ---- the cache: least recently used goes first ---- */

enum { MAX_PROGRAMS = 2048 };

typedef struct program {
  struct program *newer, *older;
  ts_executable *executable;
  size_t key_size;
  char key[];
} program;

static ErlNifMutex *cache_lock;
static ts_map cache;
static program *newest, *oldest;

bool ts_nif_eager_init(void) {
  if (!cache_lock) cache_lock = enif_mutex_create("tessera_eager");
  return cache_lock != NULL;
}

static void unlink_program(program *p) {
  *(p->newer ? &p->newer->older : &newest) = p->older;
  *(p->older ? &p->older->newer : &oldest) = p->newer;
}

static void push_program(program *p) {
  p->newer = NULL;
  p->older = newest;
  *(newest ? &newest->newer : &oldest) = p;
  newest = p;
}

/* With a reference for the caller; NULL when it is not there. */
static ts_executable *cache_get(const void *key, size_t size) {
  enif_mutex_lock(cache_lock);
  program *p = ts_map_get(&cache, key, size);
  ts_executable *executable = p ? p->executable : NULL;
  if (p) {
    ts_executable_retain(executable);
    if (p != newest) {
      unlink_program(p);
      push_program(p);
    }
  }
  enif_mutex_unlock(cache_lock);
  return executable; /* the program may be gone by now */
}

static void free_program(program *p) {
  ts_executable_release(p->executable);
  ts_free(p);
}

static void drop_oldest(void) {
  program *p = oldest;
  unlink_program(p);
  ts_map_remove(&cache, p->key, p->key_size);
  free_program(p);
}

/* A second program for a key, made at the same time, is simply not kept; nor is one for which there is no memory. */
static void cache_put(const void *key, size_t size, ts_executable *executable) {
  program *p;
  if (!ts_status_consume_ok(ts_alloc(sizeof *p + size, (void **)&p))) return;
  memcpy(p->key, key, size);
  p->key_size = size;
  p->executable = executable;
  ts_executable_retain(executable);
  enif_mutex_lock(cache_lock);
  if (ts_map_get(&cache, key, size) || !ts_status_consume_ok(ts_map_put(&cache, key, size, p))) {
    free_program(p);
  } else {
    push_program(p);
    if (cache.count > MAX_PROGRAMS) drop_oldest();
  }
  enif_mutex_unlock(cache_lock);
}

ERL_NIF_TERM ts_nif_eager_clear(ErlNifEnv *env, int argc, const ERL_NIF_TERM argv[]) {
  /* eager_clear() -> ok */
  (void)env, (void)argc, (void)argv;
  enif_mutex_lock(cache_lock);
  while (oldest) drop_oldest();
  enif_mutex_unlock(cache_lock);
  return ts_atom.ok_;
}

/* ---- a call ---- */

/* An op on operands, as decoded from the arguments of op/4. */
typedef struct call {
  ts_opcode code;
  ts_attrs attrs;
  size_t count;
  ts_operand *operands;
  ts_operand few[4];
} call;

static ts_status get_operand(ErlNifEnv *env, ERL_NIF_TERM term, ts_operand *out) {
  ERL_NIF_TERM ref;
  ts_nif_tensor *tensor;
  memset(out, 0, sizeof *out);
  if (ts_nif_tessera_get(env, term, &ref)) {
    if (ts_nif_tensor_get(env, ref, &tensor)) {
      TS_TRY(ts_nif_tensor_pin(tensor)); /* the buffer of a dead one must not be read */
      out->dtype = tensor->buffer->dtype;
      out->shape = tensor->buffer->shape;
      ts_nif_tensor_unpin(tensor);
      return TS_SUCCESS;
    }
    if (enif_is_list(env, ref))
      return ts_error(TS_INVALID_ARGUMENT, "a traced value was used outside of the function that made it");
  }
  if (!ts_nif_get_number(env, term, &out->number)) return ts_nif_expected(env, "a tensor or a number", term);
  out->is_number = true;
  out->dtype = ts_number_dtype(&out->number);
  return TS_SUCCESS;
}

static ts_status get_call(ErlNifEnv *env, const ERL_NIF_TERM argv[], call *out) {
  ERL_NIF_TERM head, tail = argv[2];
  unsigned count;
  out->operands = out->few;
  TS_TRY(ts_nif_get_opcode(env, argv[1], &out->code));
  TS_TRY(ts_nif_get_attrs(env, out->code, argv[3], &out->attrs));
  if (!enif_get_list_length(env, tail, &count)) return ts_nif_expected(env, "a list of operands", tail);
  out->count = count;
  if (count > sizeof out->few / sizeof *out->few) TS_TRY(TS_NEW_ARRAY(count, &out->operands));
  for (unsigned i = 0; i < count && enif_get_list_cell(env, tail, &head, &tail); i++) {
    ts_status status = get_operand(env, head, &out->operands[i]);
    if (status) return ts_error_context(status, "%s, operand %u", ts_op_name(out->code), i + 1);
  }
  return TS_SUCCESS;
}

static void free_call(call *c) {
  if (c->operands != c->few) ts_free(c->operands);
}

/* What decides about the program: all of the call but the values. Of a number it is the type that it has or asks for.
 */
typedef struct key {
  size_t size;
  char *bytes;
  char few[256];
} key;

static void key_add(key *k, const void *bytes, size_t size) {
  memcpy(k->bytes + k->size, bytes, size);
  k->size += size;
}

static ts_status make_key(const call *c, key *k) {
  size_t attrs_size = ts_attrs_size(ts_op_attr_kind(c->code));
  size_t bound = attrs_size + 4 + c->count * (4 + TS_MAX_RANK * sizeof(int64_t));
  k->size = 0;
  k->bytes = k->few;
  if (bound > sizeof k->few && c->count <= 2) {
    bound = attrs_size + 4;
    for (size_t i = 0; i < c->count; i++) bound += 4 + (size_t)c->operands[i].shape.rank * sizeof(int64_t);
  }
  if (bound > sizeof k->few) TS_TRY(ts_alloc(bound, (void **)&k->bytes));
  key_add(k, (uint8_t[]){(uint8_t)c->code, (uint8_t)c->count}, 2);
  for (size_t i = 0; i < c->count; i++) {
    const ts_operand *o = &c->operands[i];
    bool negative = o->is_number && o->number.kind == TS_NUMBER_SIGNED && o->number.s < 0;
    key_add(k, (uint8_t[]){(uint8_t)o->is_number, negative, (uint8_t)o->dtype, (uint8_t)o->shape.rank}, 4);
    key_add(k, o->shape.dims, (size_t)o->shape.rank * sizeof(int64_t));
  }
  key_add(k, &c->attrs, attrs_size);
  return TS_SUCCESS;
}

static void free_key(key *k) {
  if (k->bytes != k->few) ts_free(k->bytes);
}

/* ---- compiling ---- */

/* Every operand is a parameter, a number a scalar one: its value is no part of the program. */
static ts_status build_program(ts_graph *graph, call *c) {
  ts_dtype few[4], *types = few;
  ts_value_id result;
  if (c->count > sizeof few / sizeof *few) TS_TRY(TS_NEW_ARRAY(c->count, &types));
  ts_status status = ts_op_operand_types(c->code, c->operands, c->count, types);
  for (size_t i = 0; !status && i < c->count; i++) {
    ts_operand *o = &c->operands[i];
    if (o->is_number) *o = (ts_operand){.dtype = types[i]};
    status = ts_graph_add_param(graph, TS_ROOT, o->dtype, &o->shape, &o->value);
  }
  if (types != few) ts_free(types);
  if (status) return status;
  TS_TRY(ts_op_build(graph, TS_ROOT, c->code, c->operands, c->count, &c->attrs, &result));
  return ts_graph_set_results(graph, TS_ROOT, &result, 1);
}

static ts_status compile_call(call *c, ts_executable **out) {
  ts_graph *graph;
  TS_TRY(ts_graph_create(&graph));
  ts_status status = build_program(graph, c);
  if (!status) status = ts_executable_create(graph, NULL, out);
  ts_graph_destroy(graph);
  return status;
}

/* ---- running ---- */

static ts_status run_call(ErlNifEnv *env, const ts_executable *executable, ERL_NIF_TERM operands, bool watched,
                          ERL_NIF_TERM *out) {
  ts_nif_args args;
  ERL_NIF_TERM list, rest;
  TS_TRY(ts_nif_args_get(env, operands, ts_executable_param_types(executable), ts_executable_param_count(executable), 0,
                         &args));
  TS_TRY(ts_nif_run_program(env, executable, &args, 0, watched, &list));
  enif_get_list_cell(env, list, out, &rest);
  return TS_SUCCESS;
}

/* A reshape is another view of the same memory. */
static ts_status alias_tensor(ErlNifEnv *env, ERL_NIF_TERM operand, const ts_shape *shape, ERL_NIF_TERM *out) {
  ERL_NIF_TERM ref;
  ts_nif_tensor *tensor;
  ts_buffer *alias;
  if (!ts_nif_tessera_get(env, operand, &ref) || !ts_nif_tensor_get(env, ref, &tensor))
    return ts_nif_expected(env, "a tensor", operand);
  TS_TRY(ts_nif_tensor_pin(tensor));
  ts_status status = ts_buffer_alias(tensor->buffer, tensor->buffer->dtype, shape, &alias);
  ts_nif_tensor_unpin(tensor);
  return status ? status : ts_nif_tensor_make(env, alias, out);
}

static bool is_alias(const call *c) {
  if (c->code != TS_OP_RESHAPE || c->count != 1 || c->operands[0].is_number) return false;
  return ts_status_consume_ok(ts_shape_check(&c->attrs.shape, c->operands[0].dtype)) &&
         ts_shape_elements(&c->attrs.shape) == ts_shape_elements(&c->operands[0].shape);
}

/* On a dirty scheduler, where compiling and long runs may take their time. */
static ts_status op_dirty_status(ErlNifEnv *env, const ERL_NIF_TERM argv[], ERL_NIF_TERM *out) {
  call c;
  key k;
  ts_executable *executable;
  ts_status status = get_call(env, argv, &c);
  if (!status && !(status = make_key(&c, &k))) {
    executable = cache_get(k.bytes, k.size);
    if (!executable && !(status = compile_call(&c, &executable))) cache_put(k.bytes, k.size, executable);
    if (!status) {
      status = run_call(env, executable, argv[2], true, out);
      ts_executable_release(executable);
    }
    free_key(&k);
  }
  free_call(&c);
  return status;
}

static ERL_NIF_TERM op_dirty(ErlNifEnv *env, int argc, const ERL_NIF_TERM argv[]) {
  ERL_NIF_TERM term;
  (void)argc;
  TS_NIF_TRY(env, op_dirty_status(env, argv, &term));
  return ts_nif_with_pressure(env, term);
}

/* *out_done is false when the call has to go to a dirty scheduler. */
static ts_status op_status(ErlNifEnv *env, const ERL_NIF_TERM argv[], bool *out_done, ERL_NIF_TERM *out) {
  call c;
  key k;
  ts_status status = get_call(env, argv, &c);
  *out_done = true;
  if (!status && is_alias(&c)) {
    ERL_NIF_TERM head, tail;
    enif_get_list_cell(env, argv[2], &head, &tail);
    status = alias_tensor(env, head, &c.attrs.shape, out);
  } else if (!status && !(status = make_key(&c, &k))) {
    ts_executable *executable = cache_get(k.bytes, k.size);
    *out_done = executable && ts_executable_is_short(executable);
    if (*out_done) {
      status = run_call(env, executable, argv[2], false, out);
      ts_nif_spend(env, executable);
    }
    ts_executable_release(executable);
    free_key(&k);
  }
  free_call(&c);
  return status;
}

ERL_NIF_TERM ts_nif_op(ErlNifEnv *env, int argc, const ERL_NIF_TERM argv[]) {
  /* op(Builder | undefined, Name :: atom(), [Tensor | number()], Attrs) -> Tensor
   * Traced when there is a builder, else run at once: here when that is short, or on a dirty scheduler. */
  ts_nif_builder *builder;
  ts_opcode code;
  bool done;
  ERL_NIF_TERM term;
  if (ts_nif_builder_get(env, argv[0], &builder)) {
    TS_NIF_TRY(env, ts_nif_get_opcode(env, argv[1], &code));
    return ts_nif_builder_op(env, builder, code, argv[2], argv[3]);
  }
  TS_NIF_TRY(env, op_status(env, argv, &done, &term));
  if (done) return ts_nif_with_pressure(env, term);
  return enif_schedule_nif(env, "op", ERL_NIF_DIRTY_JOB_CPU_BOUND, op_dirty, argc, argv);
}
