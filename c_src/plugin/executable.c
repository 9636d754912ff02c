/* Executables: compiling, their properties, saving and loading. A saved executable is the program and its
 * options, and loading compiles it again, with kernels of the caches where there are such. */
#include "plugin/plugin.h"

#include "base/map.h"
#include "shard/shard.h"
#include "stablehlo/read.h"

#include <stdio.h>
#include <string.h>

void plugin_code_release(plugin_code *c) {
  if (!c || atomic_fetch_sub(&c->refs, 1) != 1) return;
  if (c->exe) ts_executable_release(c->exe);
  ts_free(c->program);
  ts_free(c->options);
  ts_free(c->donated);
  ts_free(c->param_types);
  ts_free(c->types);
  ts_free(c->dims);
  ts_free(c->ranks);
  ts_free(c->kinds);
  ts_free(c->kind_sizes);
  for (size_t i = 0; i < 2; i++) plugin_messages_deinit(&c->cuts[i]);
  plugin_client_release(c->client);
  ts_free(c);
}

/* ---- compiling */

static ts_status keep(const char *bytes, size_t size, char **out) {
  TS_TRY(ts_alloc(size + 1, (void **)out));
  if (size) memcpy(*out, bytes, size);
  return TS_SUCCESS;
}

static ts_status check_devices(const plugin_code *c, const plugin_options *o) {
  if (o->tuples) return ts_error(TS_UNIMPLEMENTED, "parameters that are one tuple");
  TS_TRY(plugin_check_grid(c->client, o->replicas, o->partitions));
  if (o->device_count && o->device_count != o->replicas * o->partitions)
    return ts_error(TS_INVALID_ARGUMENT, "%lld replicas of %lld partitions on %d devices", (long long)o->replicas,
                    (long long)o->partitions, o->device_count);
  return TS_SUCCESS;
}

static ts_status place(plugin_code *c, const plugin_options *o) {
  uint64_t used = 0;
  TS_TRY(check_devices(c, o));
  c->replicas = (int)o->replicas;
  c->partitions = (int)o->partitions;
  c->process_count = c->replicas * c->partitions;
  c->portable = o->portable;
  for (int i = 0; i < c->process_count; i++) {
    const int replica = i / c->partitions, partition = i % c->partitions;
    const int device = o->device_count ? o->devices[partition * c->replicas + replica] : i;
    if (device >= c->client->device_count)
      return ts_error(TS_INVALID_ARGUMENT, "there is no device %d: the client has %d", device, c->client->device_count);
    if (used >> device & 1)
      return ts_error(TS_INVALID_ARGUMENT, "device %d is named for two replicas or partitions", device);
    used |= UINT64_C(1) << device;
    c->devices[i] = device;
  }
  return TS_SUCCESS;
}

static ts_status allocate(plugin_code *c) {
  size_t dims = 0;
  const ts_type *const *types = ts_executable_result_types(c->exe);
  for (size_t i = 0; i < c->result_count; i++) dims += (size_t)types[i]->shape.rank;
  TS_TRY(TS_NEW_ARRAY(c->param_count + 1, &c->param_types));
  TS_TRY(TS_NEW_ARRAY(c->param_count + 1, &c->donated));
  TS_TRY(TS_NEW_ARRAY(c->result_count + 1, &c->types));
  TS_TRY(TS_NEW_ARRAY(c->result_count + 1, &c->ranks));
  TS_TRY(TS_NEW_ARRAY(c->result_count + 1, &c->kinds));
  TS_TRY(TS_NEW_ARRAY(c->result_count + 1, &c->kind_sizes));
  return TS_NEW_ARRAY(dims + 1, &c->dims);
}

static void fill(plugin_code *c, const ts_stablehlo_signature *s) {
  const ts_type *const *params = ts_executable_param_types(c->exe), *const *types = ts_executable_result_types(c->exe);
  int64_t *dims = c->dims;
  for (size_t i = 0; i < c->param_count; i++) {
    c->param_types[i] = plugin_type_of(params[i]->dtype, s->params[i] & TS_STABLEHLO_BOOL);
    c->donated[i] = (s->params[i] & TS_STABLEHLO_DONATED) != 0;
  }
  for (size_t i = 0; i < c->result_count; i++) {
    c->types[i] = plugin_type_of(types[i]->dtype, s->results[i] & TS_STABLEHLO_BOOL);
    c->ranks[i] = (size_t)types[i]->shape.rank;
    c->kinds[i] = PLUGIN_MEMORY_KIND;
    c->kind_sizes[i] = strlen(PLUGIN_MEMORY_KIND);
    for (int32_t d = 0; d < types[i]->shape.rank; d++) *dims++ = types[i]->shape.dims[d];
  }
}

static pj_named cost(const char *name, double value) {
  return (pj_named){.size = sizeof(pj_named),
                    .name = name,
                    .name_size = strlen(name),
                    .kind = PJ_FLOAT,
                    .number = (float)value,
                    .value_size = 1};
}

static void price(plugin_code *c) {
  ts_executable_stats s;
  ts_executable_get_stats(c->exe, &s);
  c->costs[0] = cost("estimated seconds", s.cost_ns == INT64_MAX ? -1.0 : (double)s.cost_ns * 1e-9);
  c->costs[1] = cost("bytes of temporaries", (double)s.temp_bytes);
  c->costs[2] = cost("bytes of results", (double)s.result_bytes);
  c->costs[3] = cost("kernels", (double)s.kernels);
  c->costs[4] = cost("steps", (double)s.steps);
}

/* The graph that one process runs. */
static ts_status read_graph(const plugin_code *c, ts_graph **out, ts_stablehlo_signature *signature) {
  const ts_stablehlo_grid grid = {c->replicas, c->partitions};
  ts_graph *whole;
  if (c->process_count == 1) return ts_stablehlo_read_signature(c->program, c->program_size, out, signature);
  TS_TRY(ts_stablehlo_read_processes(c->program, c->program_size, &grid, &whole, signature));
  *out = whole;
  if (whole->mesh.partitioned) return TS_SUCCESS;
  ts_status status = ts_shard_partition(whole, NULL, NULL, out);
  ts_graph_destroy(whole);
  if (status) ts_stablehlo_signature_deinit(signature);
  return status;
}

static ts_status check_processes(const plugin_code *c) {
  const int32_t count = ts_executable_partitions(c->exe);
  if (count == c->process_count) return TS_SUCCESS;
  return ts_error(TS_INVALID_ARGUMENT, "the program is for %d partitions, and is compiled for %d", count,
                  c->process_count);
}

static ts_status describe(plugin_code *c, const ts_graph *graph, const ts_stablehlo_signature *signature) {
  TS_TRY(check_processes(c));
  c->param_count = ts_executable_param_count(c->exe) - (ts_executable_has_coordinates(c->exe) ? 1 : 0);
  c->result_count = ts_executable_result_count(c->exe);
  TS_TRY(allocate(c));
  fill(c, signature);
  price(c);
  if (c->partitions == 1 || c->replicas > 1) return TS_SUCCESS;
  TS_TRY(plugin_shardings_write(graph, TS_PARAMS, c->param_count, &c->cuts[0]));
  return plugin_shardings_write(graph, TS_RESULTS, c->result_count, &c->cuts[1]);
}

static ts_status build(plugin_code *c) {
  ts_graph *graph;
  ts_stablehlo_signature signature = {0};
  TS_TRY(read_graph(c, &graph, &signature));
  ts_status status = ts_executable_create(graph, NULL, &c->exe);
  if (!status) status = describe(c, graph, &signature);
  ts_graph_destroy(graph);
  ts_stablehlo_signature_deinit(&signature);
  return status;
}

typedef struct bytes {
  const char *data;
  size_t size;
} bytes;

static ts_status make(plugin_code *c, bytes program, bytes options) {
  plugin_options o;
  TS_TRY(plugin_options_read(options.data, options.size, &o));
  TS_TRY(place(c, &o));
  TS_TRY(keep(program.data, program.size, &c->program));
  TS_TRY(keep(options.data, options.size, &c->options));
  c->program_size = program.size;
  c->options_size = options.size;
  ts_hash128 hash = ts_hash(program.data, program.size);
  snprintf(c->fingerprint, sizeof c->fingerprint, "%016llx%016llx", (unsigned long long)hash.hi,
           (unsigned long long)(hash.lo ^ ts_hash64(options.data, options.size)));
  return build(c);
}

static ts_status new_code(pj_handle *client, bytes program, bytes options, plugin_code **out) {
  plugin_code *c;
  TS_TRY(TS_NEW(&c));
  atomic_store(&c->refs, 1);
  c->client = client;
  plugin_client_retain(client);
  ts_status status = make(c, program, options);
  if (status)
    plugin_code_release(c);
  else
    *out = c;
  return status;
}

/* Takes the code over. */
static ts_status new_loaded(plugin_code *code, pj_loaded **out) {
  pj_loaded *l;
  ts_status status = TS_NEW(&l);
  if (status) {
    plugin_code_release(code);
    return status;
  }
  l->code = code;
  for (int i = 0; i < code->process_count; i++) l->devices[i] = code->client->list[code->devices[i]];
  *out = l;
  return TS_SUCCESS;
}

static ts_status new_executable(plugin_code *code, pj_executable **out) {
  ts_status status = TS_NEW(out);
  if (status)
    plugin_code_release(code);
  else
    (*out)->code = code;
  return status;
}

static ts_status check_block(const pj_program *p) {
  if (p && p->size >= offsetof(pj_program, room)) return TS_SUCCESS;
  return ts_error(TS_INVALID_ARGUMENT, "the program's block is too small");
}

static ts_status check_program(const pj_program *p) {
  TS_TRY(check_block(p));
  if (p->format_size == 4 && memcmp(p->format, "mlir", 4) == 0) return TS_SUCCESS;
  return ts_error(TS_UNIMPLEMENTED, "a program in the format \"%.*s\": the plugin reads \"mlir\"",
                  (int)(p->format_size < 40 ? p->format_size : 40), p->format);
}

ts_status plugin_compile(pj_args *args) {
  const pj_program *p = args->compile.program;
  plugin_code *code;
  TS_TRY(check_program(p));
  TS_TRY(new_code(args->compile.client, (bytes){p->code, p->code_size},
                  (bytes){args->compile.options, args->compile.options_size}, &code));
  return new_loaded(code, &args->compile.loaded);
}

ts_status plugin_compile_for(pj_args *args) {
  const pj_program *p = args->compile_for.program;
  plugin_code *code;
  TS_TRY(check_program(p));
  TS_TRY(new_code(args->compile_for.topology->client, (bytes){p->code, p->code_size},
                  (bytes){args->compile_for.options, args->compile_for.options_size}, &code));
  return new_executable(code, &args->compile_for.executable);
}

/* ---- saving and loading */

typedef struct saved_head {
  char magic[8];
  uint64_t hash[2]; /* of all bytes after the hash */
  uint64_t program_size, options_size;
} saved_head;

static const char magic[8] = "tspjrt1";

enum { HASHED_FROM = offsetof(saved_head, program_size) };

ts_status plugin_executable_save(pj_args *args) {
  const plugin_code *c = args->save.executable->code;
  size_t size = sizeof(saved_head) + c->program_size + c->options_size;
  saved_head head = {.program_size = c->program_size, .options_size = c->options_size};
  char *data;
  memcpy(head.magic, magic, sizeof magic);
  TS_TRY(ts_alloc(size, (void **)&data));
  memcpy(data, &head, sizeof head);
  memcpy(data + sizeof head, c->program, c->program_size);
  memcpy(data + sizeof head + c->program_size, c->options, c->options_size);
  ts_hash128 hash = ts_hash(data + HASHED_FROM, size - HASHED_FROM);
  memcpy(data + offsetof(saved_head, hash), (uint64_t[]){hash.lo, hash.hi}, sizeof head.hash);
  return plugin_answer_saved(args, data, size);
}

/* The options as they were given. */
ts_status plugin_executable_options(pj_args *args) {
  const plugin_code *c = args->save.executable->code;
  char *copy;
  TS_TRY(keep(c->options, c->options_size, &copy));
  return plugin_answer_saved(args, copy, c->options_size);
}

static ts_status read_saved(bytes saved, bytes *program, bytes *options) {
  saved_head head;
  if (saved.size < sizeof head || memcmp(saved.data, magic, sizeof magic) != 0)
    return ts_error(TS_INVALID_ARGUMENT, "the bytes are no executable that this plugin has saved");
  memcpy(&head, saved.data, sizeof head);
  ts_hash128 hash = ts_hash(saved.data + HASHED_FROM, saved.size - HASHED_FROM);
  size_t rest = saved.size - sizeof head;
  if (hash.lo != head.hash[0] || hash.hi != head.hash[1] || head.program_size > rest ||
      head.options_size != rest - head.program_size)
    return ts_error(TS_DATA_LOSS, "the saved executable is cut or was changed");
  *program = (bytes){saved.data + sizeof head, head.program_size};
  *options = (bytes){program->data + head.program_size, head.options_size};
  return TS_SUCCESS;
}

ts_status plugin_load(pj_args *args) {
  bytes program, options;
  plugin_code *code;
  TS_TRY(read_saved((bytes){args->load.bytes, args->load.byte_count}, &program, &options));
  if (args->size >= offsetof(pj_args, load.options_size) + sizeof(size_t) && args->load.options)
    options = (bytes){args->load.options, args->load.options_size};
  TS_TRY(new_code(args->load.client, program, options, &code));
  return new_loaded(code, &args->load.loaded);
}

/* ---- loaded executables */

ts_status plugin_loaded_destroy(pj_args *args) {
  pj_loaded *l = args->object;
  if (l) plugin_code_release(l->code);
  ts_free(l);
  return TS_SUCCESS;
}

ts_status plugin_loaded_executable(pj_args *args) {
  plugin_code *code = args->loaded.loaded->code;
  atomic_fetch_add(&code->refs, 1);
  return new_executable(code, &args->loaded.executable);
}

ts_status plugin_loaded_devices(pj_args *args) {
  const pj_loaded *l = args->list.object;
  return plugin_answer_list(args, l->devices, (size_t)l->code->process_count);
}

ts_status plugin_loaded_delete(pj_args *args) {
  atomic_store(&((pj_loaded *)args->object)->is_deleted, true);
  return TS_SUCCESS;
}

ts_status plugin_loaded_is_deleted(pj_args *args) {
  args->flag.yes = atomic_load(&((pj_loaded *)args->flag.object)->is_deleted);
  return TS_SUCCESS;
}

ts_status plugin_loaded_fingerprint(pj_args *args) {
  return plugin_answer_text(args, ((const pj_loaded *)args->text.object)->code->fingerprint);
}

ts_status plugin_loaded_assignment(pj_args *args) {
  const plugin_code *c = ((const pj_loaded *)args->object)->code;
  ts_text text = {0};
  char *data;
  ts_status status = plugin_assignment_write(c, &text);
  size_t size = text.length;
  if (!status) status = ts_text_finish(&text, &data);
  ts_text_deinit(&text);
  return status ? status : plugin_answer_saved(args, data, size);
}

/* ---- properties of executables */

static const plugin_code *code_of(const pj_args *args) { return args->outputs.executable->code; }

ts_status plugin_executable_destroy(pj_args *args) {
  pj_executable *e = args->object;
  if (e) plugin_code_release(e->code);
  ts_free(e);
  return TS_SUCCESS;
}

ts_status plugin_executable_name(pj_args *args) { return plugin_answer_text(args, "tessera"); }
ts_status plugin_executable_fingerprint(pj_args *args) { return plugin_answer_text(args, code_of(args)->fingerprint); }

ts_status plugin_executable_replicas(pj_args *args) {
  args->count.count = code_of(args)->replicas;
  return TS_SUCCESS;
}

ts_status plugin_executable_partitions(pj_args *args) {
  args->count.count = code_of(args)->partitions;
  return TS_SUCCESS;
}

ts_status plugin_executable_outputs(pj_args *args) {
  args->outputs.count = code_of(args)->result_count;
  return TS_SUCCESS;
}

/* The bytes of the steps: kernels are shared by executables. */
ts_status plugin_executable_code_size(pj_args *args) {
  ts_executable_stats s;
  ts_executable_get_stats(code_of(args)->exe, &s);
  args->count.count = s.kept_bytes;
  return TS_SUCCESS;
}

ts_status plugin_executable_cost(pj_args *args) {
  args->properties.named = code_of(args)->costs;
  args->properties.count = sizeof code_of(args)->costs / sizeof *code_of(args)->costs;
  return TS_SUCCESS;
}

ts_status plugin_executable_types(pj_args *args) {
  args->types.types = code_of(args)->types;
  args->types.count = code_of(args)->result_count;
  return TS_SUCCESS;
}

ts_status plugin_executable_dims(pj_args *args) {
  args->dims.count = code_of(args)->result_count;
  args->dims.dims = code_of(args)->dims;
  args->dims.ranks = code_of(args)->ranks;
  return TS_SUCCESS;
}

ts_status plugin_executable_spaces(pj_args *args) {
  args->kinds.count = code_of(args)->result_count;
  args->kinds.kinds = code_of(args)->kinds;
  args->kinds.kind_sizes = code_of(args)->kind_sizes;
  return TS_SUCCESS;
}

/* The program as it was given: first its size, then, where there is room, its bytes. */
ts_status plugin_executable_optimized(pj_args *args) {
  const plugin_code *c = code_of(args);
  pj_program *p = args->optimized.program;
  TS_TRY(check_block(p));
  p->format = "mlir";
  p->format_size = 4;
  if (!p->code) {
    p->code_size = c->program_size;
    return TS_SUCCESS;
  }
  if (p->code_size < c->program_size)
    return ts_error(TS_INVALID_ARGUMENT, "there is room for %zu bytes of %zu", p->code_size, c->program_size);
  memcpy((char *)(uintptr_t)p->code, c->program, c->program_size);
  p->code_size = c->program_size;
  return TS_SUCCESS;
}

static int64_t sum_bytes(const ts_type *const *types, size_t count) {
  int64_t sum = 0;
  for (size_t i = 0; i < count; i++) sum += ts_shape_bytes(&types[i]->shape, types[i]->dtype);
  return sum;
}

ts_status plugin_executable_needs(pj_args *args) {
  const plugin_code *c = code_of(args);
  ts_executable_stats s;
  ts_executable_get_stats(c->exe, &s);
  int64_t *out = args->needs.bytes;
  const int64_t all[12] = {[0] = s.kept_bytes,
                           [1] = sum_bytes(ts_executable_param_types(c->exe), c->param_count),
                           [2] = sum_bytes(ts_executable_result_types(c->exe), c->result_count),
                           [4] = s.temp_bytes,
                           [10] = s.live_peak_bytes,
                           [11] = s.planned_peak_bytes};
  for (size_t i = 0; i < 12 && offsetof(pj_args, needs.bytes[i]) + sizeof *out <= args->size; i++) out[i] = all[i];
  return TS_SUCCESS;
}
