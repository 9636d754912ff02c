#include "nif/nif_executable.h"

#include "exec/slices.h"
#include "nif/nif_job.h"
#include "nif/nif_run.h"
#include "nif/nif_turns.h"
#include "nif/nif_watch.h"
#include "nif/profile/nif_profile.h"

#include <string.h>

static ErlNifResourceType *executable_type, *run_type;

enum { FEW = 8 };

/* A program with at most this number of ops compiles in a few hundred microseconds if its kernels are in memory. */
enum { SHORT_PROGRAM = 400 };

/* ---- arguments ---- */

ts_status ts_nif_args_init(ts_nif_args *args, size_t count) {
  args->count = 0;
  args->donates = false;
  args->few_donated = 0;
  args->donated = &args->few_donated;
  args->checked = false;
  args->block = NULL;
  args->buffers = args->few_buffers;
  args->tensors = args->few_tensors;
  if (count <= sizeof args->few_buffers / sizeof *args->few_buffers) return TS_SUCCESS;
  size_t words = ts_bits_words(count), each = sizeof(ts_buffer *) + sizeof(ts_nif_tensor *);
  if (count > SIZE_MAX / 32) return ts_error_no_memory();
  TS_TRY(ts_alloc(count * each + words * sizeof *args->donated, &args->block));
  args->buffers = args->block;
  args->tensors = (ts_nif_tensor **)(args->buffers + count);
  args->donated = (uint64_t *)(args->tensors + count);
  return TS_SUCCESS;
}

ts_status ts_nif_number_buffer(const ts_number *number, const ts_type *type, ts_buffer **out) {
  ts_scalar scalar;
  *out = NULL;
  if (type->shape.rank != 0)
    return ts_error(TS_INVALID_ARGUMENT, "expected %s, got a number", TS_SHAPE_STR(type->dtype, &type->shape));
  TS_TRY(ts_number_scalar(number, type->dtype, &scalar));
  TS_TRY(ts_buffer_create(ts_pool_default(), type->dtype, &type->shape, out));
  ts_scalar_store(type->dtype, scalar, (*out)->data);
  return TS_SUCCESS;
}

void ts_nif_args_add_buffer(ts_nif_args *args, ts_buffer *buffer) {
  args->tensors[args->count] = NULL;
  args->buffers[args->count++] = buffer;
}

ts_status ts_nif_args_add_tensor(ts_nif_args *args, ts_nif_tensor *tensor, bool donate) {
  if (donate && !atomic_load(&tensor->deallocated) && ts_nif_tensor_take(tensor)) {
    ts_bits_set(args->donated, args->count);
    args->donates = true;
  } else {
    TS_TRY(ts_nif_tensor_pin(tensor));
  }
  args->tensors[args->count] = tensor;
  args->buffers[args->count++] = tensor->buffer;
  return TS_SUCCESS;
}

ts_status ts_nif_args_add(ErlNifEnv *env, ERL_NIF_TERM term, const ts_type *type, bool donate, ts_nif_args *args) {
  ERL_NIF_TERM ref;
  ts_nif_tensor *tensor;
  ts_number number;
  ts_buffer *buffer;
  if (ts_nif_tessera_get(env, term, &ref) && ts_nif_tensor_get(env, ref, &tensor))
    return ts_nif_args_add_tensor(args, tensor, donate);
  if (!ts_nif_get_number(env, term, &number)) return ts_nif_expected(env, "a tensor or a number", term);
  TS_TRY(ts_nif_number_buffer(&number, type, &buffer));
  ts_nif_args_add_buffer(args, buffer);
  return TS_SUCCESS;
}

ts_status ts_nif_args_get(ErlNifEnv *env, ERL_NIF_TERM list, const ts_type *const *types, size_t count,
                          const ts_nif_set *donate, ts_nif_args *args) {
  ERL_NIF_TERM head;
  TS_TRY(ts_nif_args_init(args, count));
  for (size_t i = 0; i < count; i++) {
    ts_status status = enif_get_list_cell(env, list, &head, &list)
                           ? ts_nif_args_add(env, head, types[i], donate && ts_nif_set_has(donate, i), args)
                           : ts_error(TS_INVALID_ARGUMENT, "the program takes %zu arguments, got %zu", count, i);
    if (!status) continue;
    ts_nif_args_done(args, false);
    return ts_error_context(status, "argument %zu", i + 1);
  }
  if (enif_is_empty_list(env, list)) return TS_SUCCESS;
  ts_nif_args_done(args, false);
  return ts_error(TS_INVALID_ARGUMENT, "the program takes %zu arguments, got more", count);
}

void ts_nif_args_done(ts_nif_args *args, bool succeeded) {
  for (size_t i = 0; i < args->count; i++) {
    bool donated = args->donates && (args->donated[i / 64] >> i % 64 & 1);
    if (!args->tensors[i])
      ts_buffer_release(args->buffers[i]);
    else if (!donated)
      ts_nif_tensor_unpin(args->tensors[i]);
    else if (succeeded)
      ts_nif_tensor_taken(args->tensors[i]);
    else
      ts_nif_tensor_give_back(args->tensors[i]);
  }
  ts_free(args->block);
  args->count = 0;
  args->block = NULL;
}

/* ---- sets ---- */

enum { EXTERNAL_VERSION = 131, SMALL_BIG = 110, LARGE_BIG = 111 };

/* A large integer in the external format: its length in one or four bytes, its sign, its bytes. */
static bool find_bytes(ts_nif_set *set) {
  const unsigned char *t = set->text.data;
  if (set->text.size < 8 || t[0] != EXTERNAL_VERSION || (t[1] != SMALL_BIG && t[1] != LARGE_BIG)) return false;
  size_t sign = t[1] == SMALL_BIG ? 3 : 6;
  set->at = sign + 1;
  set->count = set->text.size - set->at;
  return t[sign] == 0;
}

ts_status ts_nif_set_get(ErlNifEnv *env, ERL_NIF_TERM term, ts_nif_set *out) {
  ErlNifUInt64 small;
  *out = (ts_nif_set){0};
  if (enif_get_uint64(env, term, &small)) {
    out->small = small;
    return TS_SUCCESS;
  }
  if (!enif_is_number(env, term)) return ts_nif_expected(env, "a set of arguments", term);
  if (!enif_term_to_binary(env, term, &out->text)) return ts_error_no_memory();
  if (find_bytes(out)) return TS_SUCCESS;
  enif_release_binary(&out->text);
  return ts_nif_expected(env, "a set of arguments", term);
}

bool ts_nif_set_has(const ts_nif_set *set, size_t i) {
  if (!set->count) return i < 64 && (set->small >> i & 1);
  return i / 8 < set->count && (set->text.data[set->at + i / 8] >> i % 8 & 1);
}

void ts_nif_set_done(ts_nif_set *set) {
  if (set->count) enif_release_binary(&set->text);
  set->count = 0;
}

/* ---- runs ---- */

static void run_down(ErlNifEnv *env, void *object, ErlNifPid *pid, ErlNifMonitor *monitor) {
  (void)env, (void)pid, (void)monitor;
  atomic_store(&((ts_nif_long_run *)object)->control.cancel, true);
}

ts_status ts_nif_run_new(ErlNifEnv *env, ERL_NIF_TERM *out) {
  ErlNifPid self;
  ts_nif_long_run *r = enif_alloc_resource(run_type, sizeof *r);
  if (!r) return ts_error_no_memory();
  memset(r, 0, sizeof *r);
  r->watching = enif_self(env, &self) && enif_monitor_process(env, r, &self, &r->monitor) == 0;
  if (r->watching) r->caller = self;
  *out = enif_make_resource(env, r);
  enif_release_resource(r);
  return TS_SUCCESS;
}

ts_nif_long_run *ts_nif_run_get(ErlNifEnv *env, ERL_NIF_TERM term) {
  void *object;
  return enif_get_resource(env, term, run_type, &object) ? object : NULL;
}

static ERL_NIF_TERM unwatch(ErlNifEnv *env, int argc, const ERL_NIF_TERM argv[]) {
  ts_nif_long_run *r = ts_nif_run_get(env, argv[0]);
  (void)argc;
  if (r && r->watching) {
    r->watching = false;
    (void)enif_demonitor_process(env, r, &r->monitor);
  }
  return argv[1];
}

ERL_NIF_TERM ts_nif_run_return(ErlNifEnv *env, ERL_NIF_TERM run, ERL_NIF_TERM result) {
  const ERL_NIF_TERM argv[] = {run, result};
  if (enif_thread_type() == ERL_NIF_THR_NORMAL_SCHEDULER) return unwatch(env, 2, argv);
  return enif_schedule_nif(env, "run", 0, unwatch, 2, argv);
}

ERL_NIF_TERM ts_nif_run_move(ErlNifEnv *env, ts_nif_function *function, int argc, const ERL_NIF_TERM argv[]) {
  ERL_NIF_TERM all[TS_NIF_MOST_MOVED + 1];
  for (int i = 0; i < argc; i++) all[i] = argv[i];
  TS_NIF_TRY(env, ts_nif_run_new(env, &all[argc]));
  return enif_schedule_nif(env, "run", ERL_NIF_DIRTY_JOB_CPU_BOUND, function, argc + 1, all);
}

ts_status ts_nif_run_program(const ts_loaded *executable, ts_nif_args *args, ts_run_options *options, ts_buffer **out) {
  options->donated = ts_nif_args_donated(args);
  options->checked = args->checked;
  ts_status status = ts_loaded_run(executable, (ts_run_args){args->buffers, args->count}, options, out);
  ts_nif_args_done(args, !status);
  return status;
}

/* Keeps the arguments and the executable alive while the run pauses, since their handles may be collected. */
static void hold_args(ts_nif_long_run *r, ts_loaded *executable, const ts_nif_args *args) {
  bool few = args->buffers == args->few_buffers;
  r->args = *args;
  if (few) {
    r->args.buffers = r->args.few_buffers;
    r->args.tensors = r->args.few_tensors;
    r->args.donated = &r->args.few_donated;
  }
  for (size_t i = 0; i < args->count; i++)
    if (args->tensors[i]) enif_keep_resource(args->tensors[i]);
  ts_loaded_retain(executable);
  r->executable = executable;
}

static void let_go_args(ts_nif_long_run *r, bool succeeded) {
  ts_nif_tensor *few[FEW], **kept = r->args.count <= FEW ? few : r->args.tensors;
  size_t count = r->args.count;
  void *block = r->args.block;
  if (kept == few) memcpy(few, r->args.tensors, count * sizeof *few);
  r->args.block = NULL; /* the tensors are in it */
  ts_nif_args_done(&r->args, succeeded);
  for (size_t i = 0; i < count; i++)
    if (kept[i]) enif_release_resource(kept[i]);
  ts_free(block);
  ts_loaded_release(r->executable);
  r->executable = NULL;
}

/* Ends the run. NULL for `out_results` abandons it. A second call has no effect. */
static ts_status end_run(ts_nif_long_run *r, ts_buffer **out_results) {
  if (!r->executable) return TS_SUCCESS;
  ts_status status =
      r->partitions ? ts_device_group_end(r->group, out_results) : ts_device_run_end(r->execution, out_results);
  r->execution = NULL;
  r->group = NULL;
  let_go_args(r, out_results && !status);
  return status;
}

/* ---- the resource ---- */

/* An executable, and the device of its runs; NULL: their arguments decide. */
typedef struct bound {
  ts_loaded *loaded;
  ts_device *device;
} bound;

static void executable_destroy(ErlNifEnv *env, void *object) {
  (void)env;
  ts_loaded_release(((bound *)object)->loaded);
}

/* Frees the rest of the run if its caller died while it paused. */
static void run_destroy(ErlNifEnv *env, void *object) {
  (void)env;
  end_run(object, NULL);
}

bool ts_nif_executable_init(ErlNifEnv *env, ErlNifResourceFlags flags) {
  ErlNifResourceTypeInit run_init = {.dtor = run_destroy, .down = run_down};
  executable_type = enif_open_resource_type(env, NULL, "tessera_executable", executable_destroy, flags, NULL);
  run_type = enif_open_resource_type_x(env, "tessera_run", &run_init, flags, NULL);
  return executable_type && run_type;
}

static ts_status get_bound(ErlNifEnv *env, ERL_NIF_TERM term, bound *out) {
  void *object;
  if (!enif_get_resource(env, term, executable_type, &object)) return ts_nif_expected(env, "a compiled program", term);
  *out = *(bound *)object;
  return TS_SUCCESS;
}

static ts_status get_executable(ErlNifEnv *env, ERL_NIF_TERM term, ts_loaded **out) {
  bound found;
  TS_TRY(get_bound(env, term, &found));
  *out = found.loaded;
  return TS_SUCCESS;
}

ts_status ts_nif_executable_get(ErlNifEnv *env, ERL_NIF_TERM term, ts_loaded **out) {
  return get_executable(env, term, out);
}

bool ts_nif_executable_is_stale(ErlNifEnv *env, ERL_NIF_TERM term) {
  void *object;
  return enif_is_ref(env, term) && !enif_get_resource(env, term, executable_type, &object);
}

ts_status ts_nif_executable_make(ErlNifEnv *env, ts_loaded *loaded, ts_device *device, ERL_NIF_TERM *out) {
  bound *object = enif_alloc_resource(executable_type, sizeof *object);
  if (!object) {
    ts_loaded_release(loaded);
    return ts_error_no_memory();
  }
  *object = (bound){loaded, device};
  *out = enif_make_resource(env, object);
  enif_release_resource(object);
  return TS_SUCCESS;
}

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

static ERL_NIF_TERM compile_dirty(ErlNifEnv *env, int argc, const ERL_NIF_TERM argv[]) {
  ts_loaded *executable;
  compilation c;
  ERL_NIF_TERM term;
  (void)argc;
  ts_nif_watch *watch;
  TS_NIF_TRY(env, get_compilation(env, argv, &c));
  TS_NIF_TRY(env, ts_nif_watch_begin(env, &watch));
  c.options.cancel = &watch->cancel;
  ts_status status = ts_loaded_create(c.client, c.graph, &c.options, &executable);
  ts_nif_watch_end(env, watch);
  TS_NIF_TRY(env, status);
  TS_NIF_TRY(env, ts_nif_executable_make(env, executable, NULL, &term));
  return term;
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

ERL_NIF_TERM ts_nif_compile(ErlNifEnv *env, int argc, const ERL_NIF_TERM argv[]) {
  /* compile(Builder, [no_fusion | no_simplify | {client, Name} | {precision, Name}]) -> Executable | {waiting, Job}:
   * compiles a finished program; for the host at once if it is short and its kernels are in memory, else on a dirty
   * scheduler. */
  ts_loaded *executable = NULL;
  compilation c;
  ERL_NIF_TERM term;
  TS_NIF_TRY(env, get_compilation(env, argv, &c));
  if (!c.client->platform->direct) return compile_there(env, &c);
  c.options.nonblocking = true;
  if (c.graph->ops.count <= SHORT_PROGRAM)
    TS_NIF_TRY(env, ts_loaded_create(c.client, c.graph, &c.options, &executable));
  if (!executable) return enif_schedule_nif(env, "compile", ERL_NIF_DIRTY_JOB_CPU_BOUND, compile_dirty, argc, argv);
  TS_NIF_TRY(env, ts_nif_executable_make(env, executable, NULL, &term));
  return term;
}

ERL_NIF_TERM ts_nif_on_device(ErlNifEnv *env, int argc, const ERL_NIF_TERM argv[]) {
  /* on_device(Executable, {Client, Number} | undefined) -> Executable: the same one, whose runs are on that device; or,
   * with undefined, on the device of the first tensor */
  bound program;
  ts_device *device = NULL;
  ERL_NIF_TERM term;
  (void)argc;
  TS_NIF_TRY(env, get_bound(env, argv[0], &program));
  if (!enif_is_identical(argv[1], ts_atom.undefined_)) TS_NIF_TRY(env, ts_nif_get_device(env, argv[1], &device));
  ts_loaded_retain(program.loaded);
  TS_NIF_TRY(env, ts_nif_executable_make(env, program.loaded, device, &term));
  return term;
}

/* ---- running ---- */

/* Memory for the results of a program: of each partition `each`, of a run by itself once. */
typedef struct results {
  size_t count, each, lists; /* of a group: a list for each partition */
  ts_buffer **buffers, *few[FEW];
} results;

static ts_status results_init(results *r, const ts_loaded *executable, int32_t partitions) {
  r->each = executable->result_count;
  r->lists = (size_t)partitions;
  r->count = r->each * (partitions ? r->lists : 1);
  r->buffers = r->few;
  return r->count > FEW ? TS_NEW_ARRAY(r->count, &r->buffers) : TS_SUCCESS;
}

/* Makes a tensor of every buffer, or of none after an error. */
static ts_status make_list(ErlNifEnv *env, ts_buffer *const *buffers, size_t count, ts_status status,
                           ERL_NIF_TERM *out) {
  *out = enif_make_list(env, 0);
  for (size_t i = count; i-- > 0;) {
    ERL_NIF_TERM term;
    if (status)
      ts_buffer_release(buffers[i]);
    else if (!(status = ts_nif_tensor_make(env, buffers[i], &term)))
      *out = enif_make_list_cell(env, term, *out);
  }
  return status;
}

/* A list of tensors; of a group one such list for each partition. */
static ts_status make_lists(ErlNifEnv *env, const results *r, ERL_NIF_TERM *out) {
  ERL_NIF_TERM list;
  ts_status status = TS_SUCCESS;
  if (r->lists == 0) return make_list(env, r->buffers, r->count, TS_SUCCESS, out);
  *out = enif_make_list(env, 0);
  for (size_t p = r->lists; p-- > 0;) {
    status = make_list(env, r->buffers + p * r->each, r->each, status, &list);
    *out = enif_make_list_cell(env, list, *out);
  }
  return status;
}

/* Returns the list if the run that filled the results succeeded, else its status. */
static ts_status results_to_list(ErlNifEnv *env, results *r, ts_status status, ERL_NIF_TERM *out) {
  if (!status) status = make_lists(env, r, out);
  if (r->buffers != r->few) ts_free(r->buffers);
  return status;
}

ts_status ts_nif_run_group_now(ErlNifEnv *env, ts_loaded *executable, ts_nif_args *args, int threads,
                               ERL_NIF_TERM *out) {
  results r;
  ts_run_state state;
  ts_device_group *group = NULL;
  ts_group_options options = {.threads = threads, .donated = ts_nif_args_donated(args), .profile = ts_nif_profile(env)};
  ts_status status = results_init(&r, executable, executable->partitions);
  if (!status) status = ts_device_group_create(executable, (ts_run_args){args->buffers, args->count}, &options, &group);
  if (!status) status = ts_device_group_advance(group, &state);
  ts_status ended = ts_device_group_end(group, status ? NULL : r.buffers);
  if (!status) status = ended;
  ts_nif_args_done(args, !status);
  return results_to_list(env, &r, status, out);
}

static ts_status run_to_list(ErlNifEnv *env, const ts_loaded *executable, ts_nif_args *args, ts_run_options *options,
                             ERL_NIF_TERM *out) {
  results r;
  ts_status status = results_init(&r, executable, 0);
  if (!status) status = ts_nif_run_program(executable, args, options, r.buffers);
  ts_nif_args_done(args, false); /* if it never began */
  return results_to_list(env, &r, status, out);
}

/* The arguments of run/4. */
static ts_status get_call(ErlNifEnv *env, const ERL_NIF_TERM argv[], bound *out, ts_run_options *out_options,
                          ts_nif_args *out_args) {
  int threads;
  ts_nif_set donate;
  TS_TRY(get_bound(env, argv[0], out));
  TS_TRY(ts_nif_get_threads(env, argv[2], &threads));
  TS_TRY(ts_nif_set_get(env, argv[3], &donate));
  *out_options = (ts_run_options){.threads = threads, .device = out->device, .profile = ts_nif_profile(env)};
  const ts_loaded *loaded = out->loaded; /* NOLINTNEXTLINE(clang-analyzer-core.NullDereference): get_bound sets it */
  ts_status status = ts_nif_args_get(env, argv[1], loaded->param_types, loaded->param_count, &donate, out_args);
  ts_nif_set_done(&donate);
  return status;
}

/* ---- long runs ---- */

static ts_status end_to_list(ErlNifEnv *env, ts_nif_long_run *r, ERL_NIF_TERM *out) {
  results made;
  ts_status status = results_init(&made, r->executable, r->partitions);
  if (!status) status = end_run(r, made.buffers);
  return results_to_list(env, &made, status, out);
}

/* A run that waits is referred to until it is ready. */
static ts_status advance(ts_nif_long_run *r, ts_run_state *out_state) {
  enif_keep_resource(r);
  ts_status status =
      r->partitions ? ts_device_group_advance(r->group, out_state) : ts_device_run_advance(r->execution, out_state);
  if (status || *out_state != TS_RUN_WAITING) enif_release_resource(r);
  return status;
}

/* Called by the carrier's thread, by a thread that advances another run and helps the carrier, or by a thread of
 * foreign code. */
static void tell_ready(void *context) {
  ts_nif_long_run *r = context;
  ErlNifEnv *env = enif_alloc_env();
  atomic_store(&r->is_ready, true);
  if (env) {
    ts_nif_send(&r->caller, env, enif_make_tuple2(env, ts_atom.ready_, enif_make_resource(env, r)));
    enif_free_env(env);
  }
  enif_release_resource(r);
}

/* Not for a run on a device: that takes no time here, and the device must not be asked to pause. */
static ts_status advance_in_slice(ts_nif_long_run *r, ts_run_state *out_state) {
  ts_slice slice;
  ts_slice_begin(&slice, &r->control);
  ts_status status = advance(r, out_state);
  ts_slice_end(&slice);
  return status;
}

/* Unless *out_state is TS_RUN_DONE the run must be resumed. */
static ts_status run_slice(ErlNifEnv *env, ts_nif_long_run *r, ts_run_state *out_state, ERL_NIF_TERM *out) {
  ErlNifEnv *before = ts_nif_calling(env);
  ts_status status = r->executable->waits ? advance(r, out_state) : advance_in_slice(r, out_state);
  (void)ts_nif_calling(before);
  if (!status && *out_state != TS_RUN_DONE) return TS_SUCCESS;
  if (!status) status = end_to_list(env, r, out);
  (void)end_run(r, NULL); /* its state after an error */
  return status;
}

/* {callback, Run, Index, [Binary]}: the contents of the operands, as to_binary gives them. */
static ts_status make_call(ErlNifEnv *env, ts_nif_long_run *r, ERL_NIF_TERM term, ERL_NIF_TERM *out) {
  ts_run_call call;
  ERL_NIF_TERM binary, list = enif_make_list(env, 0);
  ts_device_run_get_call(r->execution, &call);
  for (uint32_t i = call.operand_count; i-- > 0;) {
    const ts_type *type = call.operand_types[i];
    int64_t elements = ts_shape_elements(&type->shape);
    size_t bytes = (size_t)ts_nif_packed_bytes(type->dtype, elements);
    unsigned char *data = enif_make_new_binary(env, bytes, &binary);
    if (!data) return ts_error_no_memory();
    const void *operand = ts_device_run_operand(r->execution, i);
    if (ts_dtype_bits(type->dtype) < 8)
      ts_nif_pack(type->dtype, operand, elements, data);
    else
      memcpy(data, operand, bytes);
    list = enif_make_list_cell(env, binary, list);
  }
  atomic_store(&r->asks, true);
  *out = enif_make_tuple4(env, ts_atom.callback_, term, enif_make_uint(env, call.index), list);
  return TS_SUCCESS;
}

static ERL_NIF_TERM resume_dirty(ErlNifEnv *env, int argc, const ERL_NIF_TERM argv[]);

static ERL_NIF_TERM go_on(ErlNifEnv *env, ts_nif_long_run *r, ERL_NIF_TERM term) {
  ts_run_state state;
  ERL_NIF_TERM list, call = term;
  ts_status status = run_slice(env, r, &state, &list);
  if (status) return ts_nif_run_return(env, term, ts_nif_error(env, status));
  switch (state) {
  case TS_RUN_DONE: return ts_nif_run_return(env, term, ts_nif_profiled(env, ts_nif_with_pressure(env, list)));
  case TS_RUN_CALLBACK: TS_NIF_TRY(env, make_call(env, r, term, &call)); return call;
  case TS_RUN_WAITING: return enif_make_tuple2(env, ts_atom.waiting_, term);
  case TS_RUN_COLLECTIVE:
  case TS_RUN_PAUSED: break;
  }
  return enif_schedule_nif(env, "run", ERL_NIF_DIRTY_JOB_CPU_BOUND, resume_dirty, 1, &term);
}

/* The run is the argument, which keeps it alive while it waits. */
static ERL_NIF_TERM resume_dirty(ErlNifEnv *env, int argc, const ERL_NIF_TERM argv[]) {
  (void)argc;
  ts_nif_long_run *r = ts_nif_run_get(env, argv[0]);
  return r ? go_on(env, r, argv[0]) : ts_nif_error(env, ts_error_no_memory());
}

/* Begins a run that outlives this call, and takes the arguments over. */
static ts_status begin_run(ts_nif_long_run *r, ts_loaded *executable, ts_nif_args *args, const ts_nif_call *call) {
  r->partitions = call->partitions;
  hold_args(r, executable, args);
  args->count = 0;
  args->block = NULL;
  ts_run_args given = {r->args.buffers, r->args.count};
  if (call->partitions)
    return ts_device_group_create(executable, given,
                                  &(ts_group_options){.control = &r->control,
                                                      .threads = call->threads,
                                                      .donated = ts_nif_args_donated(&r->args),
                                                      .profile = call->profile,
                                                      .carrier = call->carrier,
                                                      .run = call->run,
                                                      .program = call->program,
                                                      .meet_ns = call->meet_ns,
                                                      .name = call->name,
                                                      .ready = tell_ready,
                                                      .context = r},
                                  &r->group);
  return ts_device_run_create(executable, given,
                              &(ts_run_options){.control = &r->control,
                                                .threads = call->threads,
                                                .donated = ts_nif_args_donated(&r->args),
                                                .device = call->device,
                                                .profile = call->profile,
                                                .ready = tell_ready,
                                                .context = r},
                              &r->execution);
}

ERL_NIF_TERM ts_nif_run_long(ErlNifEnv *env, ERL_NIF_TERM run, ts_loaded *executable, ts_nif_args *args,
                             const ts_nif_call *call) {
  ts_nif_long_run *r = ts_nif_run_get(env, run);
  ts_status status = begin_run(r, executable, args, call);
  ts_nif_args_done(args, false);
  if (status) {
    (void)end_run(r, NULL);
    return ts_nif_run_return(env, run, ts_nif_error(env, status));
  }
  if (!call->carrier) return go_on(env, r, run);
  atomic_store(&r->is_ready, true);
  return enif_make_tuple2(env, ts_atom.waiting_, run);
}

/* The arguments of run/4, then the run. */
static ERL_NIF_TERM run_dirty(ErlNifEnv *env, int argc, const ERL_NIF_TERM argv[]) {
  bound program = {0};
  ts_run_options options;
  ts_nif_args args;
  ERL_NIF_TERM run = argv[argc - 1];
  ts_status status = get_call(env, argv, &program, &options, &args);
  if (status) return ts_nif_run_return(env, run, ts_nif_error(env, status));
  return ts_nif_run_long(
      env, run, program.loaded, &args,
      &(ts_nif_call){.threads = options.threads, .device = options.device, .profile = options.profile});
}

ERL_NIF_TERM ts_nif_run_resume(ErlNifEnv *env, int argc, const ERL_NIF_TERM argv[]) {
  /* run_resume(Run) -> as run_group/4: resumes a group that run_rank/5 has begun, or one after the
   * message {ready, Run}; or the result of a job (nif_job.h) after that message */
  ts_nif_long_run *r = ts_nif_run_get(env, argv[0]);
  ERL_NIF_TERM result;
  (void)argc;
  if (!r && ts_nif_job_resume(env, argv[0], &result)) return result;
  if (!r) return ts_nif_error(env, ts_nif_expected(env, "a run", argv[0]));
  if (!atomic_exchange(&r->is_ready, false))
    return ts_nif_error(env, ts_error(TS_FAILED_PRECONDITION, "the run is not ready to be resumed"));
  if (r->executable->waits) return go_on(env, r, argv[0]);
  return enif_schedule_nif(env, "run_group", ERL_NIF_DIRTY_JOB_CPU_BOUND, resume_dirty, 1, argv);
}

/* ---- callbacks ---- */

static void release_all(ts_buffer **buffers, size_t count) {
  for (size_t i = 0; i < count; i++) ts_buffer_release(buffers[i]);
}

/* Reads a tensor or a number as a reference to a buffer; a number gets the expected type. */
static ts_status get_result(ErlNifEnv *env, ERL_NIF_TERM term, const ts_type *type, ts_buffer **out) {
  ERL_NIF_TERM ref;
  ts_nif_tensor *tensor;
  ts_number number;
  if (ts_nif_tessera_get(env, term, &ref) && ts_nif_tensor_get(env, ref, &tensor)) {
    TS_TRY(ts_nif_tensor_pin(tensor));
    *out = tensor->buffer;
    ts_buffer_retain(*out);
    ts_nif_tensor_unpin(tensor);
    return TS_SUCCESS;
  }
  if (!ts_nif_get_number(env, term, &number)) return ts_nif_expected(env, "a tensor or a number", term);
  return ts_nif_number_buffer(&number, type, out);
}

static ts_status get_results(ErlNifEnv *env, ERL_NIF_TERM list, const ts_run_call *call, ts_buffer **out) {
  ERL_NIF_TERM head;
  for (uint32_t i = 0; i < call->result_count; i++) {
    ts_status status = enif_get_list_cell(env, list, &head, &list)
                           ? get_result(env, head, call->result_types[i], &out[i])
                           : ts_error(TS_INVALID_ARGUMENT, "expected %u results, got %u", call->result_count, i);
    if (!status) continue;
    release_all(out, i);
    return ts_error_context(status, "result %u of a callback", i + 1);
  }
  if (enif_is_empty_list(env, list)) return TS_SUCCESS;
  release_all(out, call->result_count);
  return ts_error(TS_INVALID_ARGUMENT, "expected %u results of a callback, got more", call->result_count);
}

/* A run of the host would wait here for the transfer of a result that the host cannot read. */
static ts_status check_here(const ts_loaded *executable, ts_buffer *const *given, size_t count) {
  void *bytes;
  for (size_t i = 0; !executable->waits && i < count; i++) TS_TRY(ts_device_bytes(given[i], &bytes));
  return TS_SUCCESS;
}

static ts_status take_answer(ErlNifEnv *env, ts_nif_long_run *r, ERL_NIF_TERM list) {
  ts_run_call call;
  ts_buffer **given;
  ts_device_run_get_call(r->execution, &call);
  TS_TRY(TS_NEW_ARRAY(call.result_count, &given));
  ts_status status = get_results(env, list, &call, given);
  if (!status) {
    status = check_here(r->executable, given, call.result_count);
    if (!status) status = ts_device_run_answer(r->execution, given, call.result_count);
    release_all(given, call.result_count);
  }
  ts_free(given);
  return status;
}

static ts_status get_asking(ErlNifEnv *env, ERL_NIF_TERM term, ts_nif_long_run **out) {
  *out = ts_nif_run_get(env, term);
  if (!*out) return ts_nif_expected(env, "a run", term);
  if (atomic_exchange(&(*out)->asks, false)) return TS_SUCCESS;
  return ts_error(TS_FAILED_PRECONDITION, "the run waits for no answer");
}

ERL_NIF_TERM ts_nif_run_answer(ErlNifEnv *env, int argc, const ERL_NIF_TERM argv[]) {
  /* run_answer(Run, [Tensor | number()]) -> as run/4: passes the results of the callback that the run waits for, and
   * resumes it. A wrong answer ends the run; after the error `elsewhere' it still waits for an answer. */
  ts_nif_long_run *r;
  (void)argc;
  TS_NIF_TRY(env, get_asking(env, argv[0], &r));
  ts_status status = take_answer(env, r, argv[1]);
  if (ts_status_code(status) == TS_ELSEWHERE) {
    atomic_store(&r->asks, true);
    return ts_nif_error(env, status);
  }
  if (status) {
    (void)end_run(r, NULL);
    return ts_nif_run_return(env, argv[0], ts_nif_error(env, status));
  }
  if (r->executable->is_short || r->executable->waits) return go_on(env, r, argv[0]);
  return enif_schedule_nif(env, "run", ERL_NIF_DIRTY_JOB_CPU_BOUND, resume_dirty, 1, argv);
}

ERL_NIF_TERM ts_nif_run_abandon(ErlNifEnv *env, int argc, const ERL_NIF_TERM argv[]) {
  /* run_abandon(Run) -> ok: ends the run instead of answering; its arguments and memory are released at once */
  ts_nif_long_run *r;
  (void)argc;
  TS_NIF_TRY(env, get_asking(env, argv[0], &r));
  (void)end_run(r, NULL);
  return ts_nif_run_return(env, argv[0], ts_atom.ok_);
}

/* For short runs that call back, and for runs of devices with threads of their own. */
static ERL_NIF_TERM run_on_this_scheduler(ErlNifEnv *env, const ERL_NIF_TERM argv[]) {
  ERL_NIF_TERM all[] = {argv[0], argv[1], argv[2], argv[3], 0};
  TS_NIF_TRY(env, ts_nif_run_new(env, &all[4]));
  return run_dirty(env, 5, all);
}

void ts_nif_spend(ErlNifEnv *env, const ts_loaded *executable) {
  /* of about a millisecond; a short run is less */
  int percent = (int)(ts_loaded_cost_ns(executable) * executable->partitions / 10000);
  if (percent > 0) (void)enif_consume_timeslice(env, percent < 100 ? percent : 100);
}

ERL_NIF_TERM ts_nif_run(ErlNifEnv *env, int argc, const ERL_NIF_TERM argv[]) {
  /* run(Executable, [Tensor | number()], Threads, Donated) -> [Tensor] | stale | {waiting, Run} |
   * {callback, Run, Index, [Binary]}. A run that waits for foreign code is resumed after the message {ready, Run}.
   * After a callback the caller resumes with run_answer/2 or ends the run with run_abandon/1. Donated is a set of
   * arguments, bit i for the i-th from 0. Moves to a dirty scheduler when it may take long. */
  ts_loaded *executable;
  bound program;
  ts_run_options options;
  ts_nif_args args;
  ERL_NIF_TERM list;
  (void)argc;
  if (ts_nif_executable_is_stale(env, argv[0])) return ts_atom.stale_;
  TS_NIF_TRY(env, get_executable(env, argv[0], &executable));
  TS_NIF_TRY(env, ts_nif_turn_check(env));
  if (!ts_loaded_stays(executable))
    return executable->waits ? run_on_this_scheduler(env, argv) : ts_nif_run_move(env, run_dirty, argc, argv);
  if (executable->calls_back) return run_on_this_scheduler(env, argv);
  TS_NIF_TRY(env, get_call(env, argv, &program, &options, &args));
  TS_NIF_TRY(env, run_to_list(env, executable, &args, &options, &list));
  ts_nif_spend(env, executable);
  return ts_nif_profiled(env, ts_nif_with_pressure(env, list));
}

/* ---- reading ---- */

ERL_NIF_TERM ts_nif_executable_info(ErlNifEnv *env, int argc, const ERL_NIF_TERM argv[]) {
  /* executable_info(Executable) -> #{steps, kernels, ... := integer(), is_short := boolean()} */
  ts_loaded *executable;
  ts_program_stats s;
  (void)argc;
  TS_NIF_TRY(env, get_executable(env, argv[0], &executable));
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
  TS_NIF_TRY(env, get_executable(env, argv[0], &executable));
  ts_loaded_get_stats(executable, &s);
  return enif_make_tuple2(env, enif_make_int64(env, s.kernels), enif_make_int64(env, s.kernels_compiled));
}

ERL_NIF_TERM ts_nif_explain(ErlNifEnv *env, int argc, const ERL_NIF_TERM argv[]) {
  /* explain(Executable) -> binary() */
  ts_loaded *executable;
  ts_text text = {0};
  (void)argc;
  TS_NIF_TRY(env, get_executable(env, argv[0], &executable));
  return ts_nif_text(env, ts_loaded_explain(executable, &text), &text);
}
