/* Compiling: the text, the options of the plugin's compiler, and the disk cache. */
#include "jit/session/disk.h"
#include "kernel/ref/ref.h"
#include "pass/pass.h"
#include "pjrt/split.h"

/* ---- what the plugin says of an executable */

static ts_status get_executable(const pj_code *code, pj_executable **out) {
  pj_args args = PJ_ARGS(.loaded = {.loaded = code->loaded});
  TS_TRY(pj_call(code->client->plugin, PJ_LOADED_EXECUTABLE, &args));
  *out = args.loaded.executable;
  return TS_SUCCESS;
}

static ts_status check_result(const pj_code *code, size_t i, int type, const int64_t *dims, size_t rank) {
  const ts_type *wanted = code->types[code->param_count + i];
  bool same = type == pj_type(wanted->dtype) && rank == (size_t)wanted->shape.rank;
  for (size_t d = 0; same && d < rank; d++) same = dims[d] == wanted->shape.dims[d];
  if (same) return TS_SUCCESS;
  return ts_error(TS_INTERNAL, "the plugin compiled result %zu, %s, as another type or shape", i + 1,
                  TS_SHAPE_STR(wanted->dtype, &wanted->shape));
}

static ts_status check_results(const pj_code *code, pj_executable *executable) {
  const pj_plugin *plugin = code->client->plugin;
  pj_args outputs = PJ_ARGS(.outputs = {.executable = executable});
  pj_args types = PJ_ARGS(.types = {.executable = executable}), dims = PJ_ARGS(.dims = {.executable = executable});
  TS_TRY(pj_call(plugin, PJ_EXECUTABLE_OUTPUTS, &outputs));
  if (outputs.outputs.count != code->result_count)
    return ts_error(TS_INTERNAL, "the plugin compiled a program of %zu results, expected %zu", outputs.outputs.count,
                    code->result_count);
  if (code->result_count == 0) return TS_SUCCESS;
  TS_TRY(pj_call(plugin, PJ_EXECUTABLE_TYPES, &types));
  TS_TRY(pj_call(plugin, PJ_EXECUTABLE_DIMS, &dims));
  if (types.types.count < code->result_count || dims.dims.count < code->result_count)
    return ts_error(TS_INTERNAL, "the plugin says too little of the program's results");
  const int64_t *at = dims.dims.dims;
  for (size_t i = 0; i < code->result_count; i++) {
    TS_TRY(check_result(code, i, types.types.types[i], at, dims.dims.ranks[i]));
    at += dims.dims.ranks[i];
  }
  return TS_SUCCESS;
}

static ts_status check(const pj_code *code) {
  pj_executable *executable;
  TS_TRY(get_executable(code, &executable));
  ts_status status = check_results(code, executable);
  pj_destroy(code->client->plugin, PJ_EXECUTABLE_DESTROY, executable);
  return status;
}

/* ---- the text */

/* Folds ops that a plugin must not fold: some end the process at a constant division by zero. */
static ts_status evaluate(void *context, const ts_graph *graph, ts_buffer **out_results) {
  (void)context;
  for (size_t i = 0; i < graph->ops.count; i++) {
    ts_op_class class = ts_op_get_class(graph->ops.data[i].code);
    if (class == TS_CLASS_CONTROL || class == TS_CLASS_DOT || class == TS_CLASS_LINALG || class == TS_CLASS_FFT ||
        class == TS_CLASS_COLLECTIVE)
      return ts_error(TS_UNIMPLEMENTED, "%s is not folded", ts_op_name(graph->ops.data[i].code));
  }
  return ts_ref_run(graph, NULL, 0, ts_pool_default(), out_results);
}

static ts_stablehlo_precision precision_of(const pj_client *client, ts_precision given) {
  switch (given) {
  case TS_PRECISION_HIGHEST: return TS_STABLEHLO_HIGHEST;
  case TS_PRECISION_HIGH: return TS_STABLEHLO_HIGH;
  case TS_PRECISION_DEFAULT: return TS_STABLEHLO_DEFAULT;
  case TS_PRECISION_OF_CLIENT: break;
  }
  return client->precision;
}

static bool is_of_cpus(const pj_client *client) { return strncmp(client->identity, "cpu ", 4) == 0; }

static ts_status print(const pj_code *code, const ts_graph *graph, ts_precision precision, ts_text *out) {
  ts_stablehlo_options form = is_of_cpus(code->client) ? (ts_stablehlo_options){.barriers = TS_STABLEHLO_ALL_BARRIERS}
                                                       : ts_stablehlo_for_accelerators();
  form.replicas = graph->mesh.rank > 0;
  form.precision = precision_of(code->client, precision);
  ts_pass_options options = {.evaluate = evaluate};
  static ts_status (*const passes[])(const ts_graph *, const ts_pass_options *,
                                     ts_graph **) = {ts_pass_factor_loops, ts_pass_guard, ts_pass_fold};
  ts_graph *last = NULL, *next;
  ts_status status = TS_SUCCESS;
  for (size_t i = ts_factor_loops_apply(graph) ? 0 : 1; !status && i < sizeof passes / sizeof *passes; i++) {
    status = passes[i](last ? last : graph, &options, &next);
    if (status) break;
    ts_graph_destroy(last);
    last = next;
  }
  if (!status) status = ts_graph_print_stablehlo_with(last, &form, out);
  ts_graph_destroy(last);
  return status;
}

static ts_status set_types(const ts_graph *graph, pj_code *code) {
  const ts_region *root = ts_graph_region(graph, TS_ROOT);
  for (size_t i = 0; i < code->param_count + code->result_count; i++) {
    ts_value_id id = i < code->param_count ? root->params.data[i] : root->results.data[i - code->param_count];
    const ts_value *value = ts_graph_value(graph, id);
    ts_type_set(pj_code_type(code, i), value->dtype, value->shape);
    if (!pj_type(value->dtype))
      return ts_error(TS_UNIMPLEMENTED, "the type %s is not known to plugins", ts_dtype_name(value->dtype));
  }
  return TS_SUCCESS;
}

/* A field of a serialized message: its number, then bytes. All of ours are shorter than 128. */
static void append_field(ts_text *out, int number, const char *bytes, size_t size) {
  const char head[] = {(char)(number << 3 | 2), (char)size};
  ts_text_append_n(out, head, sizeof head);
  ts_text_append_n(out, bytes, size);
}

/* An option of the plugin's compiler. `value` is the field of a boolean or a number. */
static void append_option(ts_text *out, const char *name, const char *value, size_t size) {
  ts_text entry = {0};
  append_field(&entry, 1, name, strlen(name));
  append_field(&entry, 2, value, size);
  append_field(out, 7, entry.data, entry.length);
  out->failed = out->failed || entry.failed;
  ts_text_deinit(&entry);
}

/* Whether the compiler may make arctangents, also as a part of functions of complex numbers. */
static bool has_arctangents(const ts_text *program) {
  static const char *const names[] = {"atan", "asin", "acos", "complex<"};
  for (size_t i = 0; i < sizeof names / sizeof *names; i++)
    if (memmem(program->data, program->length, names[i], strlen(names[i]))) return true;
  return false;
}

/* XLA's own choices for CPUs are a minimum and maximum that may drop a NaN, and f16 and bf16 that are not rounded
 * between two ops. Some builds of it have an arctangent whose vectors of more than 128 bits get wrong arguments. */
static void append_options_of_cpus(const ts_text *program, ts_text *out) {
  static const char off[] = {0x10, 0}, bits_128[] = {0x18, (char)0x80, 1};
  append_option(out, "xla_cpu_enable_fast_min_max", off, sizeof off);
  append_option(out, "xla_allow_excess_precision", off, sizeof off);
  if (has_arctangents(program)) append_option(out, "xla_cpu_prefer_vector_width", bits_128, sizeof bits_128);
}

/* The serialized options: one replica on any device of the client, or a replica for each partition, on the device of
 * its number. They are never empty. */
static void append_options(const pj_code *code, const ts_text *program, ts_text *out) {
  static const char portable[] = {0x20, 1};
  const char counts[] = {0x20, (char)code->partitions, 0x28, 1}; /* at most 64 */
  append_field(out, 3, counts, sizeof counts);
  if (code->partitions == 1) ts_text_append_n(out, portable, sizeof portable);
  if (is_of_cpus(code->client)) append_options_of_cpus(program, out);
}

static ts_status call_compiler(pj_code *code, const ts_text *text, const ts_text *options) {
  static const char format[] = "mlir";
  pj_program program = {.size = sizeof program,
                        .code = text->data,
                        .code_size = text->length,
                        .format = format,
                        .format_size = sizeof format - 1};
  pj_args args = PJ_ARGS(.compile = {.client = code->client->handle,
                                     .program = &program,
                                     .options = options->data,
                                     .options_size = options->length});
  TS_TRY(pj_call(code->client->plugin, PJ_COMPILE, &args));
  code->loaded = args.compile.loaded;
  return check(code);
}

/* Takes `saved` over. It stays: what XLA's CPUs save of an executable that was loaded lacks functions, so a program is
 * saved with the bytes that it was loaded from. */
static ts_status call_loader(pj_code *code, ts_object saved) {
  code->saved = saved;
  pj_args args = PJ_ARGS(.load = {.client = code->client->handle, .bytes = saved.data, .byte_count = saved.size});
  TS_TRY(pj_call(code->client->plugin, PJ_LOAD, &args));
  code->loaded = args.load.loaded;
  return check(code);
}

/* ---- saving */

ts_status pj_code_append(const pj_code *code, ts_text *out) {
  if (code->saved.data) {
    ts_text_append_n(out, code->saved.data, code->saved.size);
    return TS_SUCCESS;
  }
  const pj_plugin *plugin = code->client->plugin;
  pj_executable *executable;
  TS_TRY(get_executable(code, &executable));
  pj_args args = PJ_ARGS(.save = {.executable = executable});
  ts_status status = pj_call(plugin, PJ_EXECUTABLE_SERIALIZE, &args);
  if (!status) {
    ts_text_append_n(out, args.save.bytes, args.save.byte_count);
    if (args.save.destroy) args.save.destroy(args.save.saved);
  }
  pj_destroy(plugin, PJ_EXECUTABLE_DESTROY, executable);
  return status;
}

/* ---- the disk cache: what a plugin saved, by its kind, the options and the program. A plugin that does not take it
 * any more compiles again. */

static bool read_cached(pj_code *code, const ts_text *key) {
  ts_object saved;
  if (!ts_disk_read(key->data, key->length, &saved)) return false;
  if (ts_status_consume_ok(call_loader(code, saved))) return true;
  pj_destroy(code->client->plugin, PJ_LOADED_DESTROY, code->loaded);
  ts_free(code->saved.data);
  code->loaded = NULL;
  code->saved = (ts_object){0};
  return false;
}

/* Not all plugins can save. */
static void write_cached(const pj_code *code, const ts_text *key) {
  ts_text saved = {0};
  if (ts_status_consume_ok(pj_code_append(code, &saved)) && !saved.failed && saved.length > 0)
    ts_disk_write(key->data, key->length, &(ts_object){saved.data, saved.length});
  ts_text_deinit(&saved);
}

static ts_status compile_with(pj_code *code, const ts_text *text, const ts_text *options) {
  ts_text key = {0};
  if (!ts_disk_is_used()) return call_compiler(code, text, options);
  ts_text_format(&key, "pjrt %s\n", code->client->kind);
  ts_text_append_n(&key, options->data, options->length);
  ts_text_append_n(&key, text->data, text->length);
  bool cached = !key.failed && read_cached(code, &key);
  ts_status status = cached ? TS_SUCCESS : call_compiler(code, text, options);
  if (!status && !cached && !key.failed) write_cached(code, &key);
  ts_text_deinit(&key);
  return status;
}

/* Keeps the program, to compile it again if its process ends. */
static ts_status keep(pj_code *code, const ts_text *text) {
  if (!pj_plugin_is_isolated(code->client->plugin)) return TS_SUCCESS;
  TS_TRY(ts_alloc(text->length + 1, (void **)&code->text));
  memcpy(code->text, text->data, text->length);
  code->text_size = text->length;
  return TS_SUCCESS;
}

static ts_status compile_text(pj_code *code, const ts_text *text) {
  ts_text options = {0};
  append_options(code, text, &options);
  ts_status status = options.failed ? ts_error_no_memory() : keep(code, text);
  if (!status) status = compile_with(code, text, &options);
  ts_text_deinit(&options);
  return status;
}

/* No device has more bytes, and compilers of plugins divide by zero for larger types. */
#define MOST_BYTES (INT64_C(1) << 46)

static ts_status check_sizes(const ts_graph *graph) {
  for (size_t i = 0; i < graph->values.count; i++) {
    const ts_value *value = &graph->values.data[i];
    int64_t bytes = ts_shape_bytes(value->shape, value->dtype);
    if (bytes > MOST_BYTES)
      return ts_error(TS_RESOURCE_EXHAUSTED, "%s has %lld bytes, which no device has",
                      TS_SHAPE_STR(value->dtype, value->shape), (long long)bytes);
  }
  return TS_SUCCESS;
}

static bool has_collectives(const ts_graph *graph) {
  for (size_t i = 0; i < graph->ops.count; i++)
    if (ts_op_get_class(graph->ops.data[i].code) == TS_CLASS_COLLECTIVE) return true;
  return false;
}

static ts_status check_graph(const pj_client *client, const ts_graph *graph) {
  const ts_mesh *mesh = &graph->mesh;
  int32_t partitions = ts_mesh_partitions(mesh);
  if (mesh->rank > 0 && !mesh->partitioned && !has_collectives(graph))
    return ts_error(TS_UNIMPLEMENTED, "a plugin runs the partitions of a program, and this program is not partitioned");
  if (partitions > client->device_count || partitions > 64)
    return ts_error(TS_INVALID_ARGUMENT, "the program has %d partitions, and the plugin has %d devices", partitions,
                    client->device_count);
  if (mesh->rank > 0 && pj_calls_back(graph))
    return ts_error(TS_FAILED_PRECONDITION, "callback: a program with partitions cannot call back");
  return check_sizes(graph);
}

/* Of each partition, and their memories on the devices. */
static ts_status place_coordinates(pj_code *code) {
  const ts_type *type = code->types[code->param_count - 1];
  int64_t rank = ts_shape_elements(&type->shape);
  TS_TRY(TS_NEW_ARRAY(code->partitions, &code->coordinates));
  for (int32_t i = 0; i < code->partitions; i++)
    TS_TRY(pj_memory_from_host(code->client, i, type, code->grid + i * rank, &code->coordinates[i]));
  return TS_SUCCESS;
}

static ts_status make_coordinates(pj_code *code, const ts_mesh *mesh) {
  if (!mesh->coordinates) return TS_SUCCESS;
  TS_TRY(TS_NEW_ARRAY(code->partitions * mesh->rank, &code->grid));
  for (int32_t i = 0; i < code->partitions; i++) {
    int32_t at[TS_MAX_MESH_AXES];
    ts_mesh_coordinates(mesh, i, at);
    memcpy(code->grid + i * mesh->rank, at, (size_t)mesh->rank * sizeof *at);
  }
  return place_coordinates(code);
}

static ts_status copy_coordinates(pj_code *code, const pj_code *from) {
  if (!from->grid) return TS_SUCCESS;
  size_t rank = (size_t)ts_shape_elements(&from->types[from->param_count - 1]->shape);
  size_t count = (size_t)code->partitions * rank;
  TS_TRY(TS_NEW_ARRAY(count, &code->grid));
  memcpy(code->grid, from->grid, count * sizeof *code->grid);
  return place_coordinates(code);
}

static ts_status compile_whole(const ts_graph *graph, ts_precision precision, pj_code *code) {
  ts_text text = {0};
  ts_status status = print(code, graph, precision, &text);
  if (!status) status = compile_text(code, &text);
  ts_text_deinit(&text);
  return status;
}

ts_status pj_compile_now(pj_client *client, const ts_graph *graph, ts_precision precision, pj_code **out) {
  const ts_region *root = ts_graph_region(graph, TS_ROOT);
  pj_code *code;
  TS_TRY(check_graph(client, graph));
  TS_TRY(pj_code_new(client, root->params.count, root->results.count, &code));
  code->partitions = ts_mesh_partitions(&graph->mesh);
  ts_status status = set_types(graph, code);
  if (!status) status = make_coordinates(code, &graph->mesh);
  if (!status)
    status = pj_calls_back(graph) ? pj_split_create(client, graph, precision, &code->split)
                                  : compile_whole(graph, precision, code);
  if (status)
    pj_code_destroy(code);
  else
    *out = code;
  return status;
}

ts_status pj_code_load(pj_code *code, const char *bytes, size_t size) {
  ts_object saved = {.size = size};
  TS_TRY(ts_alloc(size + 1, &saved.data));
  memcpy(saved.data, bytes, size);
  return call_loader(code, saved);
}

/* ---- after the process of an isolated plugin has ended */

ts_status pj_compile_again(pj_client *client, const pj_code *from, pj_code **out) {
  pj_code *code;
  TS_TRY(pj_code_new(client, from->param_count, from->result_count, &code));
  code->partitions = from->partitions;
  for (size_t i = 0; i < code->param_count + code->result_count; i++)
    ts_type_set(pj_code_type(code, i), from->types[i]->dtype, &from->types[i]->shape);
  const ts_text text = {.data = from->text, .length = from->text_size};
  ts_status status = copy_coordinates(code, from);
  if (!status) status = from->text ? compile_text(code, &text) : pj_code_load(code, from->saved.data, from->saved.size);
  if (status) {
    pj_code_destroy(code);
    return status;
  }
  pj_client_retain(client);
  *out = code;
  return TS_SUCCESS;
}
