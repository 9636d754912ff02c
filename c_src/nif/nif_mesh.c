#include "nif/nif_mesh.h"

#include "kernel/ref/ref.h"
#include "nif/nif_executable.h"
#include "nif/nif_graph.h"
#include "nif/nif_watch.h"
#include "nif/run/nif_args.h"
#include "shard/shard.h"
#include "stablehlo/read.h"

#include <string.h>

/* ---- meshes and shardings as terms ---- */

static ts_status get_mesh(ErlNifEnv *env, ERL_NIF_TERM list, ts_mesh *out) {
  ERL_NIF_TERM head;
  int64_t size;
  *out = (ts_mesh){0};
  while (enif_get_list_cell(env, list, &head, &list)) {
    if (out->rank == TS_MAX_MESH_AXES)
      return ts_error(TS_INVALID_ARGUMENT, "the mesh has more than %d axes", TS_MAX_MESH_AXES);
    TS_TRY(ts_nif_get_int(env, head, "the size of a mesh axis", &size));
    if (size < 1 || size > TS_MAX_PARTITIONS) {
      char expected[64];
      snprintf(expected, sizeof expected, "the size of a mesh axis, 1 to %d", TS_MAX_PARTITIONS);
      return ts_nif_expected(env, expected, head);
    }
    out->sizes[out->rank++] = (int32_t)size;
  }
  if (!enif_is_empty_list(env, list)) return ts_nif_expected(env, "a list of sizes", list);
  return ts_mesh_check(out);
}

/* The name of the mesh and the names of its axes. */
static ts_status get_names(ErlNifEnv *env, ERL_NIF_TERM list, ts_mesh *out) {
  ERL_NIF_TERM head, tail = list;
  ErlNifBinary name;
  for (int32_t i = -1; i < out->rank; i++) {
    if (!enif_get_list_cell(env, tail, &head, &tail) || !enif_inspect_binary(env, head, &name))
      return ts_nif_expected(env, "the names of the mesh and of its axes", list);
    TS_TRY(ts_mesh_set_name(i < 0 ? out->name : out->axis_names[i], (const char *)name.data, name.size));
  }
  return ts_mesh_check(out);
}

static ts_status get_cut(ErlNifEnv *env, ERL_NIF_TERM term, ts_dims *axes, ts_dims *dims) {
  const ERL_NIF_TERM *pair;
  int arity;
  if (axes->rank == TS_MAX_MESH_AXES)
    return ts_error(TS_INVALID_ARGUMENT, "a sharding has more than %d cuts", TS_MAX_MESH_AXES);
  if (!enif_get_tuple(env, term, &arity, &pair) || arity != 2) return ts_nif_expected(env, "{Axis, Dim}", term);
  TS_TRY(ts_nif_get_int(env, pair[0], "a mesh axis", &axes->dims[axes->rank++]));
  return ts_nif_get_int(env, pair[1], "a dim", &dims->dims[dims->rank++]);
}

static ts_status get_sharding(ErlNifEnv *env, ERL_NIF_TERM list, const ts_mesh *mesh, const ts_shape *shape,
                              ts_sharding *out) {
  ERL_NIF_TERM head;
  ts_dims axes = {0}, dims = {0};
  while (enif_get_list_cell(env, list, &head, &list)) TS_TRY(get_cut(env, head, &axes, &dims));
  if (!enif_is_empty_list(env, list)) return ts_nif_expected(env, "a list of {Axis, Dim}", list);
  return ts_sharding_make(mesh, &axes, &dims, shape, out);
}

static ERL_NIF_TERM sharding_term(ErlNifEnv *env, const ts_sharding *s) {
  ERL_NIF_TERM list = enif_make_list(env, 0);
  for (int32_t i = s->count; i-- > 0;) {
    ERL_NIF_TERM cut = enif_make_tuple2(env, enif_make_int(env, s->cuts[i].axis), enif_make_int(env, s->cuts[i].dim));
    list = enif_make_list_cell(env, cut, list);
  }
  return list;
}

/* ---- programs ---- */

static ts_status set_mesh(ts_graph *graph, void *mesh) { return ts_graph_set_mesh(graph, mesh); }

static ts_status get_builder(ErlNifEnv *env, ERL_NIF_TERM term, ts_nif_builder **out) {
  return ts_nif_builder_get(env, term, out) ? TS_SUCCESS : ts_nif_expected(env, "a traced program", term);
}

ERL_NIF_TERM ts_nif_set_mesh(ErlNifEnv *env, int argc, const ERL_NIF_TERM argv[]) {
  /* set_mesh(Builder, [Size], [Name :: binary()]) -> ok: the mesh of a program, with its name and all axes' names,
   * before it has collectives or constraints */
  ts_nif_builder *builder;
  ts_mesh mesh;
  (void)argc;
  TS_NIF_TRY(env, get_builder(env, argv[0], &builder));
  TS_NIF_TRY(env, get_mesh(env, argv[1], &mesh));
  TS_NIF_TRY(env, get_names(env, argv[2], &mesh));
  TS_NIF_TRY(env, ts_nif_builder_edit(builder, set_mesh, &mesh));
  return ts_atom.ok_;
}

typedef struct root_list {
  ErlNifEnv *env;
  ts_root_side side;
  ERL_NIF_TERM list;
} root_list;

/* The terms are checked against the program's types. */
static ts_status set_shardings(ts_graph *graph, void *context) {
  root_list *c = context;
  const ts_region *root = ts_graph_region(graph, TS_ROOT);
  size_t count = c->side == TS_PARAMS ? root->params.count : root->results.count;
  ERL_NIF_TERM head, tail = c->list;
  ts_sharding sharding;
  for (size_t i = 0; enif_get_list_cell(c->env, tail, &head, &tail); i++) {
    if (i == count) return ts_error(TS_INVALID_ARGUMENT, "the program has %zu values, got more shardings", count);
    if (enif_is_identical(head, ts_atom.undefined_)) continue;
    const ts_value *value = ts_graph_value(graph, c->side == TS_PARAMS ? root->params.data[i] : root->results.data[i]);
    TS_TRY(get_sharding(c->env, head, &graph->mesh, value->shape, &sharding));
    TS_TRY(ts_graph_set_sharding(graph, c->side, i, &sharding));
  }
  return enif_is_empty_list(c->env, tail) ? TS_SUCCESS : ts_nif_expected(c->env, "a list of shardings", c->list);
}

ERL_NIF_TERM ts_nif_set_shardings(ErlNifEnv *env, int argc, const ERL_NIF_TERM argv[]) {
  /* set_shardings(Builder, [Cuts | undefined], [Cuts | undefined]) -> ok: the shardings of the arguments and of the
   * results of a finished program; shorter lists leave the rest undefined */
  ts_nif_builder *builder;
  (void)argc;
  TS_NIF_TRY(env, get_builder(env, argv[0], &builder));
  TS_NIF_TRY(env, ts_nif_builder_edit(builder, set_shardings, &(root_list){env, TS_PARAMS, argv[1]}));
  TS_NIF_TRY(env, ts_nif_builder_edit(builder, set_shardings, &(root_list){env, TS_RESULTS, argv[2]}));
  return ts_atom.ok_;
}

ERL_NIF_TERM ts_nif_root_shardings(ErlNifEnv *env, const ts_graph *graph, ts_root_side side) {
  const ts_region *root = ts_graph_region(graph, TS_ROOT);
  size_t count = side == TS_PARAMS ? root->params.count : root->results.count;
  ERL_NIF_TERM list = enif_make_list(env, 0);
  for (size_t i = count; i-- > 0;) {
    const ts_sharding *sharding = ts_graph_sharding(graph, side, i);
    list = enif_make_list_cell(env, sharding ? sharding_term(env, sharding) : ts_atom.undefined_, list);
  }
  return list;
}

/* ---- modules of StableHLO for the partitions of a mesh ---- */

static ERL_NIF_TERM root_terms(ErlNifEnv *env, const ts_root_sharding *roots, size_t count) {
  ERL_NIF_TERM list = enif_make_list(env, 0);
  for (size_t i = count; i-- > 0;)
    list = enif_make_list_cell(env, roots[i].given ? sharding_term(env, &roots[i].sharding) : ts_atom.undefined_, list);
  return list;
}

static ERL_NIF_TERM mesh_terms(ErlNifEnv *env, const ts_mesh *mesh, ERL_NIF_TERM *out_names) {
  ERL_NIF_TERM sizes = enif_make_list(env, 0);
  *out_names = sizes;
  for (int32_t i = mesh->rank; i-- > 0;) {
    sizes = enif_make_list_cell(env, enif_make_int(env, mesh->sizes[i]), sizes);
    const ERL_NIF_TERM name = ts_nif_binary(env, mesh->axis_names[i], strlen(mesh->axis_names[i]));
    *out_names = enif_make_list_cell(env, name, *out_names);
  }
  const ERL_NIF_TERM own = ts_nif_binary(env, mesh->name, strlen(mesh->name));
  *out_names = enif_make_list_cell(env, own, *out_names);
  return sizes;
}

ERL_NIF_TERM ts_nif_stablehlo_shardings(ErlNifEnv *env, int argc, const ERL_NIF_TERM argv[]) {
  /* stablehlo_shardings(Text :: binary()) -> {Partitions, [Size], [Name], local | global, [Cuts | undefined],
   * [Cuts | undefined]}: the mesh of a module, without axes if it has none, whether the program is of one partition,
   * and how its arguments and results are cut */
  ErlNifBinary text;
  ERL_NIF_TERM names;
  ts_stablehlo_shardings s;
  (void)argc;
  if (!enif_inspect_binary(env, argv[0], &text)) return ts_nif_error(env, ts_nif_expected(env, "a binary", argv[0]));
  TS_NIF_TRY(env, ts_stablehlo_read_shardings((const char *)text.data, text.size, &s));
  const ERL_NIF_TERM sizes = mesh_terms(env, &s.mesh, &names);
  const ERL_NIF_TERM term = enif_make_tuple6(
      env, enif_make_int64(env, s.partitions), sizes, names, enif_make_atom(env, s.is_local ? "local" : "global"),
      root_terms(env, s.params, s.param_count), root_terms(env, s.results, s.result_count));
  ts_stablehlo_shardings_deinit(&s);
  return term;
}

/* ---- the program of one partition ---- */

static ts_status partition(ErlNifEnv *env, const ts_graph *graph, ERL_NIF_TERM *out) {
  ts_shard_report report = {0};
  ts_nif_watch *watch;
  ts_graph *made = NULL;
  ts_text text = {0};
  ERL_NIF_TERM builder;
  TS_TRY(ts_nif_watch_begin(env, &watch));
  ts_status status = ts_shard_partition(graph, &watch->cancel, &report, &made);
  if (!status) status = ts_shard_print_report(made, &report, &text);
  ERL_NIF_TERM params = status ? 0 : ts_nif_root_shardings(env, made, TS_PARAMS);
  ERL_NIF_TERM results = status ? 0 : ts_nif_root_shardings(env, made, TS_RESULTS);
  if (status)
    ts_graph_destroy(made);
  else
    status = ts_nif_builder_of(env, made, &builder);
  if (!status) *out = enif_make_tuple4(env, builder, params, results, ts_nif_binary(env, text.data, text.length));
  ts_text_deinit(&text);
  ts_shard_report_deinit(&report);
  ts_nif_watch_end(env, watch);
  return status;
}

ERL_NIF_TERM ts_nif_partition(ErlNifEnv *env, int argc, const ERL_NIF_TERM argv[]) {
  /* partition(Builder) -> {Builder, [Cuts], [Cuts], Report :: binary()}: the program of one partition, the cuts of its
   * arguments and results, and a report of its collectives. Ends early when the calling process dies. */
  ts_nif_builder *builder;
  const ts_graph *graph;
  ERL_NIF_TERM term;
  (void)argc;
  TS_NIF_TRY(env, get_builder(env, argv[0], &builder));
  TS_NIF_TRY(env, ts_nif_builder_graph(builder, &graph));
  TS_NIF_TRY(env, partition(env, graph, &term));
  return term;
}

/* ---- parts of tensors ---- */

/* A copy of more bytes takes longer than a millisecond. */
enum { LONG_CUT = 1 << 20 };

typedef struct parts {
  ts_mesh mesh;
  ts_sharding sharding;
  ts_client *client;
  ts_buffer **of; /* by partition; NULL from the first on that could not be made */
} parts;

static ts_status get_parted(ErlNifEnv *env, ERL_NIF_TERM mesh, parts *out) {
  TS_TRY(get_mesh(env, mesh, &out->mesh));
  return TS_NEW_ARRAY((size_t)ts_mesh_partitions(&out->mesh), &out->of);
}

static void release_parts(parts *p) {
  for (int32_t i = 0; p->of && i < ts_mesh_partitions(&p->mesh); i++) ts_buffer_release(p->of[i]);
  ts_free(p->of);
}

/* The tensor of one device: the whole, another device's part, or a new one. `whole` is in host memory. */
static ts_status cut_one(parts *p, ts_buffer *whole, int32_t partition) {
  ts_device *device;
  ts_buffer *part;
  ts_shape shape;
  TS_TRY(ts_client_device(p->client, partition, &device));
  int32_t first = ts_shard_first_like(&p->mesh, &p->sharding, partition);
  if (first < partition) return ts_device_move(device, p->of[first], &p->of[partition]);
  if (p->sharding.count == 0) return ts_device_move(device, whole, &p->of[partition]);
  ts_sharding_part(&p->mesh, &p->sharding, &whole->shape, &shape);
  TS_TRY(ts_device_stage(device, whole->dtype, &shape, &part));
  ts_shard_copy_part(&p->mesh, &p->sharding, whole, part, partition, TS_PART_OUT);
  return ts_device_place(device, part, &p->of[partition]);
}

static ts_status cut_all(ErlNifEnv *env, parts *p, ts_buffer *whole) {
  for (int32_t i = 0; i < ts_mesh_partitions(&p->mesh); i++) {
    if (i > 0 && !enif_is_current_process_alive(env)) return ts_nif_caller_died();
    TS_TRY(cut_one(p, whole, i));
  }
  return TS_SUCCESS;
}

/* Makes a tensor of each part. */
static ts_status parts_to_list(ErlNifEnv *env, parts *p, ERL_NIF_TERM *out) {
  *out = enif_make_list(env, 0);
  for (int32_t i = ts_mesh_partitions(&p->mesh); i-- > 0;) {
    ERL_NIF_TERM term;
    ts_buffer *part = p->of[i];
    p->of[i] = NULL; /* the tensor takes it over */
    TS_TRY(ts_nif_tensor_make(env, part, &term));
    *out = enif_make_list_cell(env, term, *out);
  }
  return TS_SUCCESS;
}

/* A reference to a buffer that the host can read; an error for another one. */
static ts_status get_host(ts_buffer *buffer, ts_buffer **out) {
  void *bytes;
  *out = NULL;
  TS_TRY(ts_device_bytes(buffer, &bytes));
  ts_buffer_retain(buffer);
  *out = buffer;
  return TS_SUCCESS;
}

static ts_status cut_tensor(ErlNifEnv *env, const ERL_NIF_TERM argv[], parts *p, ts_buffer *tensor) {
  ts_buffer *host;
  TS_TRY(get_sharding(env, argv[2], &p->mesh, &tensor->shape, &p->sharding));
  if (!p->client->platform->direct)
    return ts_error(TS_FAILED_PRECONDITION, "cut: the parts cannot be made on client %s", p->client->name);
  TS_TRY(get_host(tensor, &host));
  ts_status status = cut_all(env, p, p->sharding.count > 0 ? host : tensor);
  ts_buffer_release(host);
  return status;
}

static ERL_NIF_TERM cut(ErlNifEnv *env, int argc, const ERL_NIF_TERM argv[]) {
  parts p = {0};
  ts_nif_tensor *tensor;
  ERL_NIF_TERM list = 0;
  (void)argc;
  TS_NIF_TRY(env, ts_nif_get_client(env, argv[3], &p.client));
  TS_NIF_TRY(env, ts_nif_tensor_get_pinned(env, argv[0], &tensor));
  ts_status status = get_parted(env, argv[1], &p);
  if (!status) status = cut_tensor(env, argv, &p, tensor->buffer);
  if (!status) status = parts_to_list(env, &p, &list);
  release_parts(&p);
  ts_nif_tensor_unpin(tensor);
  return status ? ts_nif_error(env, status) : ts_nif_with_pressure(env, list);
}

static bool is_long(ErlNifEnv *env, ERL_NIF_TERM ref) {
  ts_nif_tensor *tensor;
  if (ts_nif_tensor_get_pinned(env, ref, &tensor)) return true;
  bool found = tensor->buffer->bytes > LONG_CUT;
  ts_nif_tensor_unpin(tensor);
  return found;
}

ERL_NIF_TERM ts_nif_cut(ErlNifEnv *env, int argc, const ERL_NIF_TERM argv[]) {
  /* cut(Ref, [Size], Cuts, Client) -> [Tensor]: the part of each partition, the i-th on device i of a client of the
   * host. Parts that are equal share their memory. */
  if (is_long(env, argv[0])) return enif_schedule_nif(env, "cut", ERL_NIF_DIRTY_JOB_CPU_BOUND, cut, argc, argv);
  return cut(env, argc, argv);
}

/* The parts are retained, in host memory. */
static ts_status get_parts(ErlNifEnv *env, ERL_NIF_TERM list, parts *p) {
  ERL_NIF_TERM head;
  ts_nif_tensor *tensor;
  for (int32_t i = 0; i < ts_mesh_partitions(&p->mesh); i++) {
    if (!enif_get_list_cell(env, list, &head, &list)) return ts_nif_expected(env, "a part for each partition", list);
    TS_TRY(ts_nif_tensor_get_pinned(env, head, &tensor));
    ts_status status = get_host(tensor->buffer, &p->of[i]);
    ts_nif_tensor_unpin(tensor);
    TS_TRY(status);
    if (p->of[i]->dtype != p->of[0]->dtype || !ts_shape_equal(&p->of[i]->shape, &p->of[0]->shape))
      return ts_error(TS_INVALID_ARGUMENT, "part %d is %s, part 0 is %s", i,
                      TS_SHAPE_STR(p->of[i]->dtype, &p->of[i]->shape), TS_SHAPE_STR(p->of[0]->dtype, &p->of[0]->shape));
  }
  return TS_SUCCESS;
}

/* The sharding of parts: any cut divides the whole, so the axes and dims are all that can be wrong. */
static ts_status get_sharding_of_parts(ErlNifEnv *env, ERL_NIF_TERM cuts, parts *p) {
  ts_shape whole;
  if (!p->of[0]) return ts_nif_expected(env, "a mesh of devices", cuts);
  ts_shape_copy(&whole, &p->of[0]->shape);
  for (int32_t d = 0; d < whole.rank; d++) whole.dims[d] = 0;
  return get_sharding(env, cuts, &p->mesh, &whole, &p->sharding);
}

static ts_status join(ErlNifEnv *env, parts *p, ts_device *device, ts_buffer **out) {
  ts_shape whole;
  ts_buffer *staged;
  if (p->sharding.count == 0) return ts_device_move(device, p->of[0], out);
  ts_sharding_whole(&p->mesh, &p->sharding, &p->of[0]->shape, &whole);
  TS_TRY(ts_shape_check(&whole, p->of[0]->dtype));
  TS_TRY(ts_device_stage(device, p->of[0]->dtype, &whole, &staged));
  for (int32_t i = 0; i < ts_mesh_partitions(&p->mesh); i++) {
    if (ts_shard_first_like(&p->mesh, &p->sharding, i) != i) continue;
    ts_shard_copy_part(&p->mesh, &p->sharding, staged, p->of[i], i, TS_PART_IN);
    if (enif_is_current_process_alive(env)) continue;
    ts_buffer_release(staged);
    return ts_nif_caller_died();
  }
  return ts_device_place(device, staged, out);
}

static ERL_NIF_TERM join_dirty(ErlNifEnv *env, int argc, const ERL_NIF_TERM argv[]) {
  parts p = {0};
  ts_device *device;
  ts_buffer *whole;
  ERL_NIF_TERM term;
  (void)argc;
  TS_NIF_TRY(env, ts_nif_get_device(env, argv[3], &device));
  ts_status status = get_parted(env, argv[1], &p);
  if (!status) status = get_parts(env, argv[0], &p);
  if (!status) status = get_sharding_of_parts(env, argv[2], &p);
  if (!status) status = join(env, &p, device, &whole);
  release_parts(&p);
  TS_NIF_TRY(env, status);
  TS_NIF_TRY(env, ts_nif_tensor_make(env, whole, &term));
  return ts_nif_with_pressure(env, term);
}

ERL_NIF_TERM ts_nif_join(ErlNifEnv *env, int argc, const ERL_NIF_TERM argv[]) {
  /* join([Ref], [Size], Cuts, Device) -> Tensor: the whole of the parts of all partitions, on that device of the host.
   * Of equal parts the first is taken. */
  ERL_NIF_TERM head, tail;
  if (!enif_get_list_cell(env, argv[0], &head, &tail) || is_long(env, head))
    return enif_schedule_nif(env, "join", ERL_NIF_DIRTY_JOB_CPU_BOUND, join_dirty, argc, argv);
  return join_dirty(env, argc, argv);
}

/* ---- the interpreter ---- */

/* The calls of all partitions: `buffers` has the arguments of partition 0, then of 1, and so on. */
typedef struct interpreted {
  const ts_graph *graph;
  ts_client *client;
  int32_t partitions;
  size_t params, results;
  ts_type *types;
  const ts_type **type_of;
  ts_nif_args *args;
  ts_buffer **buffers, **made;
} interpreted;

static ts_status make_room(interpreted *c) {
  const ts_region *root = ts_graph_region(c->graph, TS_ROOT);
  c->partitions = ts_mesh_partitions(&c->graph->mesh);
  c->params = root->params.count - (c->graph->mesh.coordinates ? 1 : 0);
  c->results = root->results.count;
  TS_TRY(TS_NEW_ARRAY(c->params, &c->types));
  TS_TRY(TS_NEW_ARRAY(c->params, &c->type_of));
  TS_TRY(TS_NEW_ARRAY((size_t)c->partitions, &c->args));
  TS_TRY(TS_NEW_ARRAY((size_t)c->partitions * c->params, &c->buffers));
  TS_TRY(TS_NEW_ARRAY((size_t)c->partitions * c->results, &c->made));
  for (size_t i = 0; i < c->params; i++) {
    const ts_value *value = ts_graph_value(c->graph, root->params.data[i]);
    ts_type_set(&c->types[i], value->dtype, value->shape);
    c->type_of[i] = &c->types[i];
  }
  return TS_SUCCESS;
}

static ts_status get_calls(ErlNifEnv *env, ERL_NIF_TERM lists, interpreted *c) {
  ERL_NIF_TERM head;
  for (int32_t p = 0; p < c->partitions; p++) {
    if (!enif_get_list_cell(env, lists, &head, &lists)) return ts_nif_expected(env, "a list for each partition", lists);
    TS_TRY(ts_nif_args_get(env, head, c->type_of, c->params, NULL, &c->args[p]));
    for (size_t i = 0; i < c->params; i++) TS_TRY(ts_device_bytes(c->args[p].buffers[i], &(void *){NULL}));
    memcpy(c->buffers + (size_t)p * c->params, c->args[p].buffers, c->params * sizeof *c->buffers);
  }
  return TS_SUCCESS;
}

/* A copy of a result of the interpreter, which is on no device: on the partition's device of the client, or on device 0
 * where the mesh has more partitions than the client has devices. */
static ts_status result_term(ErlNifEnv *env, interpreted *c, int32_t partition, ts_buffer *made, ERL_NIF_TERM *out) {
  ts_device *device;
  ts_buffer *placed;
  bool has_own = partition < atomic_load_explicit(&c->client->device_count, memory_order_acquire);
  ts_status status = ts_client_device(c->client, has_own ? partition : 0, &device);
  if (!status) status = ts_device_copy(device, made, &placed);
  return status ? status : ts_nif_tensor_make(env, placed, out);
}

static ts_status results_of(ErlNifEnv *env, interpreted *c, ERL_NIF_TERM *out) {
  *out = enif_make_list(env, 0);
  for (int32_t p = c->partitions; p-- > 0;) {
    ERL_NIF_TERM term, list = enif_make_list(env, 0);
    for (size_t i = c->results; i-- > 0;) {
      TS_TRY(result_term(env, c, p, c->made[(size_t)p * c->results + i], &term));
      list = enif_make_list_cell(env, term, list);
    }
    *out = enif_make_list_cell(env, list, *out);
  }
  return TS_SUCCESS;
}

static void release_calls(interpreted *c) {
  for (int32_t p = 0; c->args && p < c->partitions; p++) ts_nif_args_done(&c->args[p], false);
  for (size_t i = 0; c->made && i < (size_t)c->partitions * c->results; i++) ts_buffer_release(c->made[i]);
  ts_free(c->types);
  ts_free(c->type_of);
  ts_free(c->args);
  ts_free(c->buffers);
  ts_free(c->made);
}

ERL_NIF_TERM ts_nif_interpret(ErlNifEnv *env, int argc, const ERL_NIF_TERM argv[]) {
  /* interpret(Builder, [[Tensor | number()]], Client) -> [[Tensor]]: runs a partitioned program by the interpreter,
   * which says what collectives mean; for tests */
  ts_nif_builder *builder;
  interpreted c = {0};
  ERL_NIF_TERM lists = 0;
  (void)argc;
  TS_NIF_TRY(env, get_builder(env, argv[0], &builder));
  TS_NIF_TRY(env, ts_nif_builder_graph(builder, &c.graph));
  TS_NIF_TRY(env, ts_nif_get_client(env, argv[2], &c.client));
  if (!c.client->platform->direct) c.client = ts_client_host();
  ts_status status = make_room(&c);
  if (!status) status = get_calls(env, argv[1], &c);
  if (!status) status = ts_ref_run_partitions(c.graph, c.buffers, c.params, ts_pool_default(), c.made);
  if (!status) status = results_of(env, &c, &lists);
  release_calls(&c);
  return status ? ts_nif_error(env, status) : lists;
}
