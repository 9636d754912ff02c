#include "nif/run/nif_run.h"

#include "exec/slices.h"
#include "nif/nif_job.h"
#include "nif/nif_turns.h"
#include "nif/profile/nif_profile.h"

#include <string.h>

static ErlNifResourceType *run_type;

enum { FEW = 8 };

/* ---- the resource ---- */

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

void ts_nif_run_drop(ts_nif_long_run *r) { (void)end_run(r, NULL); }

/* Frees the rest of the run if its caller died while it paused. */
static void run_destroy(ErlNifEnv *env, void *object) {
  (void)env;
  ts_nif_run_drop(object);
}

bool ts_nif_run_init(ErlNifEnv *env, ErlNifResourceFlags flags) {
  ErlNifResourceTypeInit init = {.dtor = run_destroy, .down = run_down};
  run_type = enif_open_resource_type_x(env, "tessera_run", &init, flags, NULL);
  return run_type;
}

/* ---- runs on the calling scheduler ---- */

ts_status ts_nif_run_program(const ts_loaded *executable, ts_nif_args *args, ts_run_options *options, ts_buffer **out) {
  options->donated = ts_nif_args_donated(args);
  options->checked = args->checked;
  ts_status status = ts_loaded_run(executable, (ts_run_args){args->buffers, args->count}, options, out);
  ts_nif_args_done(args, !status);
  return status;
}

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

/* The arguments of run/4 behind the program. */
static ts_status get_call(ErlNifEnv *env, const ts_nif_bound *program, const ERL_NIF_TERM argv[],
                          ts_run_options *out_options, ts_nif_args *out_args) {
  int threads;
  ts_nif_set donate;
  TS_TRY(ts_nif_get_threads(env, argv[2], &threads));
  TS_TRY(ts_nif_set_get(env, argv[3], &donate));
  *out_options = (ts_run_options){.threads = threads, .device = program->device, .profile = ts_nif_profile(env)};
  const ts_loaded *loaded = program->loaded;
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
  ts_slice_begin(&slice, &r->control, enif_thread_type() == ERL_NIF_THR_NORMAL_SCHEDULER);
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
  ts_nif_run_drop(r); /* its state after an error */
  return status;
}

static ERL_NIF_TERM resume_dirty(ErlNifEnv *env, int argc, const ERL_NIF_TERM argv[]);

static ERL_NIF_TERM go_on(ErlNifEnv *env, ts_nif_long_run *r, ERL_NIF_TERM term) {
  ts_run_state state;
  ERL_NIF_TERM list, call = term;
  ts_status status = run_slice(env, r, &state, &list);
  if (status) return ts_nif_run_return(env, term, ts_nif_error(env, status));
  switch (state) {
  case TS_RUN_DONE: return ts_nif_run_return(env, term, ts_nif_profiled(env, ts_nif_with_much_pressure(env, list)));
  case TS_RUN_CALLBACK: TS_NIF_TRY(env, ts_nif_run_make_call(env, r, term, &call)); return call;
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

ERL_NIF_TERM ts_nif_run_go_on(ErlNifEnv *env, ts_nif_long_run *r, ERL_NIF_TERM term, bool here) {
  if (here) return go_on(env, r, term);
  return enif_schedule_nif(env, "run", ERL_NIF_DIRTY_JOB_CPU_BOUND, resume_dirty, 1, &term);
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
    ts_nif_run_drop(r);
    return ts_nif_run_return(env, run, ts_nif_error(env, status));
  }
  if (!call->carrier) return go_on(env, r, run);
  atomic_store(&r->is_ready, true);
  return enif_make_tuple2(env, ts_atom.waiting_, run);
}

/* The arguments of run/4, then the run. */
static ERL_NIF_TERM run_dirty(ErlNifEnv *env, int argc, const ERL_NIF_TERM argv[]) {
  ts_nif_bound program;
  ts_run_options options;
  ts_nif_args args;
  ERL_NIF_TERM run = argv[argc - 1];
  if (!ts_nif_executable_find(env, argv[0], &program))
    return ts_nif_run_return(env, run, ts_nif_executable_missing(env, argv[0]));
  ts_status status = get_call(env, &program, argv, &options, &args);
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
  return ts_nif_run_go_on(env, r, argv[0], r->executable->waits);
}

/* For runs that call back or may be stopped, and for runs of devices with threads of their own. */
static ERL_NIF_TERM run_on_this_scheduler(ErlNifEnv *env, const ERL_NIF_TERM argv[]) {
  ERL_NIF_TERM all[] = {argv[0], argv[1], argv[2], argv[3], 0};
  TS_NIF_TRY(env, ts_nif_run_new(env, &all[4]));
  return run_dirty(env, 5, all);
}

void ts_nif_spend(ErlNifEnv *env, const ts_loaded *executable) {
  /* of about a millisecond; a short run is less */
  int64_t percent = ts_loaded_cost_ns(executable) / 10000 * executable->partitions;
  if (percent > 0) (void)enif_consume_timeslice(env, percent < 100 ? (int)percent : 100);
}

/* A run that stays as long as it is short. What it began it ends on a dirty scheduler. */
static ERL_NIF_TERM run_until_stopped(ErlNifEnv *env, int argc, const ERL_NIF_TERM argv[],
                                      const ts_loaded *executable) {
  if (!ts_slices_start()) return ts_nif_run_move(env, run_dirty, argc, argv);
  ts_nif_spend(env, executable);
  return run_on_this_scheduler(env, argv);
}

ERL_NIF_TERM ts_nif_run(ErlNifEnv *env, int argc, const ERL_NIF_TERM argv[]) {
  /* run(Executable, [Tensor | number()], Threads, Donated) -> [Tensor] | stale | {waiting, Run} |
   * {callback, Run, Index, [Binary]}. A run that waits for foreign code is resumed after the message {ready, Run}.
   * After a callback the caller resumes with run_answer/2 or ends the run with run_abandon/1. Donated is a set of
   * arguments, bit i for the i-th from 0. Moves to a dirty scheduler when it may take long. Or crowded: nothing was
   * done, and the caller should collect garbage before it calls again. */
  ts_nif_bound program;
  ts_run_options options;
  ts_nif_args args;
  ERL_NIF_TERM list;
  if (!ts_nif_executable_find(env, argv[0], &program)) return ts_nif_executable_missing(env, argv[0]);
  const ts_loaded *executable = program.loaded;
  TS_NIF_TRY(env, ts_nif_turn_check(env));
  if (ts_nif_is_crowded()) return ts_atom.crowded_;
  if (!ts_loaded_stays(executable))
    return executable->waits ? run_on_this_scheduler(env, argv) : ts_nif_run_move(env, run_dirty, argc, argv);
  if (executable->may_stop) return run_until_stopped(env, argc, argv, executable);
  if (executable->calls_back) return run_on_this_scheduler(env, argv);
  TS_NIF_TRY(env, get_call(env, &program, argv, &options, &args));
  TS_NIF_TRY(env, run_to_list(env, executable, &args, &options, &list));
  ts_nif_spend(env, executable);
  return ts_nif_profiled(env, ts_nif_with_much_pressure(env, list));
}
