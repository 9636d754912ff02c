#include "nif/nif_executable.h"

#include "nif/nif_attrs.h"
#include "nif/nif_job.h"
#include "nif/nif_watch.h"

static ErlNifResourceType *executable_type;

/* A program with at most this number of ops compiles in a few hundred microseconds if its kernels are in memory. */
enum { SHORT_PROGRAM = 400 };

static void executable_destroy(ErlNifEnv *env, void *object) {
  (void)env;
  ts_loaded_release(((ts_nif_bound *)object)->loaded);
}

bool ts_nif_executable_init(ErlNifEnv *env, ErlNifResourceFlags flags) {
  executable_type = enif_open_resource_type(env, NULL, "tessera_executable", executable_destroy, flags, NULL);
  return executable_type;
}

bool ts_nif_executable_find(ErlNifEnv *env, ERL_NIF_TERM term, ts_nif_bound *out) {
  void *object;
  if (!enif_get_resource(env, term, executable_type, &object)) return false;
  *out = *(ts_nif_bound *)object;
  return true;
}

static ts_status expected_program(ErlNifEnv *env, ERL_NIF_TERM term) {
  return ts_nif_expected(env, "a compiled program", term);
}

ERL_NIF_TERM ts_nif_executable_missing(ErlNifEnv *env, ERL_NIF_TERM term) {
  return enif_is_ref(env, term) ? ts_atom.stale_ : ts_nif_error(env, expected_program(env, term));
}

ts_status ts_nif_executable_get(ErlNifEnv *env, ERL_NIF_TERM term, ts_loaded **out) {
  ts_nif_bound found;
  if (!ts_nif_executable_find(env, term, &found)) return expected_program(env, term);
  *out = found.loaded;
  return TS_SUCCESS;
}

ts_status ts_nif_executable_make(ErlNifEnv *env, ts_loaded *loaded, ts_device *device, ERL_NIF_TERM *out) {
  ts_nif_bound *object = enif_alloc_resource(executable_type, sizeof *object);
  if (!object) {
    ts_loaded_release(loaded);
    return ts_error_no_memory();
  }
  *object = (ts_nif_bound){loaded, device};
  *out = enif_make_resource(env, object);
  enif_release_resource(object);
  return TS_SUCCESS;
}

/* ---- compiling ---- */

/* The arguments of compile/2. */
typedef struct compilation {
  ts_nif_builder *builder;
  const ts_graph *graph;
  ts_client *client;
  ts_program_options options;
} compilation;

static ts_precision get_precision(ERL_NIF_TERM name) {
  if (enif_is_identical(name, ts_atom.highest_)) return TS_PRECISION_HIGHEST;
  if (enif_is_identical(name, ts_atom.high_)) return TS_PRECISION_HIGH;
  return enif_is_identical(name, ts_atom.default_) ? TS_PRECISION_DEFAULT : TS_PRECISION_OF_CLIENT;
}

/* An option with a value. */
static ts_status get_pair(ErlNifEnv *env, ERL_NIF_TERM option, compilation *out) {
  const ERL_NIF_TERM *items;
  int count;
  if (!enif_get_tuple(env, option, &count, &items) || count != 2) return TS_SUCCESS;
  if (enif_is_identical(items[0], ts_atom.client_)) return ts_nif_get_client(env, items[1], &out->client);
  if (enif_is_identical(items[0], ts_atom.precision_)) out->options.precision = get_precision(items[1]);
  return TS_SUCCESS;
}

static ts_status get_compilation(ErlNifEnv *env, const ERL_NIF_TERM argv[], compilation *out) {
  ERL_NIF_TERM head, tail = argv[1];
  *out = (compilation){.client = ts_device_default()->client};
  if (!ts_nif_builder_get(env, argv[0], &out->builder)) return ts_nif_expected(env, "a traced program", argv[0]);
  while (enif_get_list_cell(env, tail, &head, &tail)) {
    out->options.no_fusion |= enif_is_identical(head, ts_atom.no_fusion_);
    out->options.no_simplify |= enif_is_identical(head, ts_atom.no_simplify_);
    TS_TRY(get_pair(env, head, out));
  }
  return ts_nif_builder_graph(out->builder, &out->graph);
}

static ERL_NIF_TERM compiled(ErlNifEnv *env, ts_nif_job *job) {
  ERL_NIF_TERM term;
  ts_loaded *loaded = job->loaded;
  job->loaded = NULL;
  TS_NIF_TRY(env, ts_nif_executable_make(env, loaded, NULL, &term));
  return term;
}

/* By a device. The job keeps the graph. */
static ERL_NIF_TERM compile_there(ErlNifEnv *env, compilation *c) {
  ts_nif_job *job;
  TS_NIF_TRY(env, ts_nif_job_new(env, compiled, &job));
  enif_keep_resource(c->builder);
  job->builder = c->builder;
  c->options.cancel = &job->cancel;
  ErlNifEnv *before = ts_nif_calling(env);
  ts_loaded_create_start(c->client, c->graph, &c->options, &job->loaded, ts_nif_job_done(job));
  (void)ts_nif_calling(before);
  return ts_nif_job_return(env, job);
}

static ERL_NIF_TERM compile_dirty(ErlNifEnv *env, int argc, const ERL_NIF_TERM argv[]) {
  ts_loaded *executable;
  compilation c;
  ERL_NIF_TERM term;
  (void)argc;
  ts_nif_watch *watch;
  TS_NIF_TRY(env, get_compilation(env, argv, &c));
  if (!c.client->platform->direct) return compile_there(env, &c);
  TS_NIF_TRY(env, ts_nif_watch_begin(env, &watch));
  c.options.cancel = &watch->cancel;
  ts_status status = ts_loaded_create(c.client, c.graph, &c.options, &executable);
  ts_nif_watch_end(env, watch);
  TS_NIF_TRY(env, status);
  TS_NIF_TRY(env, ts_nif_executable_make(env, executable, NULL, &term));
  return term;
}

ERL_NIF_TERM ts_nif_compile(ErlNifEnv *env, int argc, const ERL_NIF_TERM argv[]) {
  /* compile(Builder, [no_fusion | no_simplify | {client, Name} | {precision, Name}]) -> Executable | {waiting, Job}:
   * compiles a finished program; for the host at once if it is short and its kernels are in memory, else on a dirty
   * scheduler. A device may copy the program before it compiles, so a long one begins there, too. */
  ts_loaded *executable = NULL;
  compilation c;
  ERL_NIF_TERM term;
  TS_NIF_TRY(env, get_compilation(env, argv, &c));
  const bool is_short = c.graph->ops.count <= SHORT_PROGRAM;
  if (is_short && !c.client->platform->direct) return compile_there(env, &c);
  c.options.nonblocking = true;
  if (is_short) TS_NIF_TRY(env, ts_loaded_create(c.client, c.graph, &c.options, &executable));
  if (!executable) return enif_schedule_nif(env, "compile", ERL_NIF_DIRTY_JOB_CPU_BOUND, compile_dirty, argc, argv);
  TS_NIF_TRY(env, ts_nif_executable_make(env, executable, NULL, &term));
  return term;
}

ERL_NIF_TERM ts_nif_on_device(ErlNifEnv *env, int argc, const ERL_NIF_TERM argv[]) {
  /* on_device(Executable, {Client, Number} | undefined) -> Executable: the same one, whose runs are on that device; or,
   * with undefined, on the device of the first tensor */
  ts_loaded *loaded;
  ts_device *device = NULL;
  ERL_NIF_TERM term;
  (void)argc;
  TS_NIF_TRY(env, ts_nif_executable_get(env, argv[0], &loaded));
  if (!enif_is_identical(argv[1], ts_atom.undefined_)) TS_NIF_TRY(env, ts_nif_get_device(env, argv[1], &device));
  ts_loaded_retain(loaded);
  TS_NIF_TRY(env, ts_nif_executable_make(env, loaded, device, &term));
  return term;
}

/* ---- reading ---- */

ERL_NIF_TERM ts_nif_executable_info(ErlNifEnv *env, int argc, const ERL_NIF_TERM argv[]) {
  /* executable_info(Executable) -> #{steps, kernels, ... := integer(), is_short := boolean()} */
  ts_loaded *executable;
  ts_program_stats s;
  (void)argc;
  TS_NIF_TRY(env, ts_nif_executable_get(env, argv[0], &executable));
  ts_loaded_get_stats(executable, &s);
  ERL_NIF_TERM map,
      keys[] = {ts_atom.steps_,        ts_atom.kernels_,         ts_atom.kernels_compiled_,   ts_atom.temp_bytes_,
                ts_atom.result_bytes_, ts_atom.live_peak_bytes_, ts_atom.planned_peak_bytes_, ts_atom.cost_ns_,
                ts_atom.pass_ns_,      ts_atom.lower_ns_,        ts_atom.kernel_ns_,          ts_atom.is_short_};
  ERL_NIF_TERM values[] = {enif_make_int64(env, s.steps),
                           enif_make_int64(env, s.kernels),
                           enif_make_int64(env, s.kernels_compiled),
                           enif_make_int64(env, s.temp_bytes),
                           enif_make_int64(env, s.result_bytes),
                           enif_make_int64(env, s.live_peak_bytes),
                           enif_make_int64(env, s.planned_peak_bytes),
                           s.cost_ns == INT64_MAX ? ts_atom.infinity_ : enif_make_int64(env, s.cost_ns),
                           enif_make_int64(env, s.pass_ns),
                           enif_make_int64(env, s.lower_ns),
                           enif_make_int64(env, s.kernel_ns),
                           executable->is_short ? ts_atom.true_ : ts_atom.false_};
  enif_make_map_from_arrays(env, keys, values, sizeof keys / sizeof *keys, &map);
  return map;
}

ERL_NIF_TERM ts_nif_executable_kernels(ErlNifEnv *env, int argc, const ERL_NIF_TERM argv[]) {
  /* executable_kernels(Executable) -> {All :: integer(), Compiled :: integer()}: a cheap part of executable_info, for
   * the event after each compilation */
  ts_loaded *executable;
  ts_program_stats s;
  (void)argc;
  TS_NIF_TRY(env, ts_nif_executable_get(env, argv[0], &executable));
  ts_loaded_get_stats(executable, &s);
  return enif_make_tuple2(env, enif_make_int64(env, s.kernels), enif_make_int64(env, s.kernels_compiled));
}

ERL_NIF_TERM ts_nif_explain(ErlNifEnv *env, int argc, const ERL_NIF_TERM argv[]) {
  /* explain(Executable) -> binary() */
  ts_loaded *executable;
  ts_text text = {0};
  (void)argc;
  TS_NIF_TRY(env, ts_nif_executable_get(env, argv[0], &executable));
  return ts_nif_text(env, ts_loaded_explain(executable, &text), &text);
}
