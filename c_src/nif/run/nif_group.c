#include "nif/run/nif_group.h"

#include "nif/nif_rank.h"
#include "nif/nif_turns.h"
#include "nif/profile/nif_profile.h"
#include "nif/run/nif_run.h"

#include <string.h>

typedef struct group_call {
  ts_loaded *executable;
  int threads;
  ts_nif_set donate;
  size_t each;        /* arguments of a partition */
  int32_t partitions; /* that are run here */
} group_call;

/* One argument of a partition, from its list. */
static ts_status get_arg(ErlNifEnv *env, const group_call *call, size_t i, ERL_NIF_TERM *list, ts_nif_args *args) {
  ERL_NIF_TERM head;
  if (enif_get_list_cell(env, *list, &head, list))
    return ts_nif_args_add(env, head, call->executable->param_types[i], ts_nif_set_has(&call->donate, i), args);
  return ts_error(TS_INVALID_ARGUMENT, "the program takes %zu arguments, got %zu", call->each, i);
}

static ts_status get_list(ErlNifEnv *env, const group_call *call, ERL_NIF_TERM list, ts_nif_args *args) {
  for (size_t i = 0; i < call->each; i++)
    TS_TRY(ts_error_context(get_arg(env, call, i, &list, args), "argument %zu", i + 1));
  if (enif_is_empty_list(env, list)) return TS_SUCCESS;
  return ts_error(TS_INVALID_ARGUMENT, "the program takes %zu arguments, got more", call->each);
}

static ts_status get_lists(ErlNifEnv *env, const group_call *call, ERL_NIF_TERM lists, ts_nif_args *args) {
  unsigned given;
  int32_t partitions = call->partitions;
  ERL_NIF_TERM head;
  if (!enif_get_list_length(env, lists, &given))
    return ts_nif_expected(env, "a list of arguments for each partition", lists);
  if (given != (unsigned)partitions)
    return ts_error(TS_INVALID_ARGUMENT, "the program has %d partitions, got %u lists of arguments", partitions, given);
  for (int32_t p = 0; enif_get_list_cell(env, lists, &head, &lists); p++)
    TS_TRY(ts_error_context(get_list(env, call, head, args), "partition %d", p));
  return TS_SUCCESS;
}

static bool get_program(ErlNifEnv *env, ERL_NIF_TERM term, group_call *out) {
  ts_nif_bound program;
  bool found = ts_nif_executable_find(env, term, &program);
  if (found) out->executable = program.loaded;
  return found;
}

static ts_status get_options(ErlNifEnv *env, const ERL_NIF_TERM argv[], const ts_carrier *carrier, group_call *out) {
  TS_TRY(ts_nif_get_threads(env, argv[2], &out->threads));
  out->partitions = ts_device_group_size(out->executable, carrier);
  out->each = out->executable->param_count - (out->executable->coordinates ? 1 : 0);
  return ts_nif_set_get(env, argv[3], &out->donate);
}

/* The arguments behind the program, which the call has. */
static ts_status get_call(ErlNifEnv *env, const ERL_NIF_TERM argv[], const ts_carrier *carrier, group_call *out,
                          ts_nif_args *out_args) {
  TS_TRY(get_options(env, argv, carrier, out));
  ts_status status = ts_nif_args_init(out_args, out->each * (size_t)out->partitions);
  if (!status) status = get_lists(env, out, argv[1], out_args);
  if (status) ts_nif_args_done(out_args, false);
  ts_nif_set_done(&out->donate);
  return status;
}

/* The arguments of run_group/4, then the run. */
static ERL_NIF_TERM run_dirty(ErlNifEnv *env, int argc, const ERL_NIF_TERM argv[]) {
  group_call call;
  ts_nif_args args;
  ERL_NIF_TERM run = argv[argc - 1];
  if (!get_program(env, argv[0], &call)) return ts_nif_run_return(env, run, ts_nif_executable_missing(env, argv[0]));
  ts_status status = get_call(env, argv, NULL, &call, &args);
  if (status) return ts_nif_run_return(env, run, ts_nif_error(env, status));
  return ts_nif_run_long(
      env, run, call.executable, &args,
      &(ts_nif_call){.threads = call.threads, .partitions = call.partitions, .profile = ts_nif_profile(env)});
}

/* For runs of devices with threads of their own. */
static ERL_NIF_TERM run_on_this_scheduler(ErlNifEnv *env, const ERL_NIF_TERM argv[]) {
  ERL_NIF_TERM all[] = {argv[0], argv[1], argv[2], argv[3], 0};
  TS_NIF_TRY(env, ts_nif_run_new(env, &all[4]));
  return run_dirty(env, 5, all);
}

ERL_NIF_TERM ts_nif_run_group(ErlNifEnv *env, int argc, const ERL_NIF_TERM argv[]) {
  /* run_group(Executable, [[Tensor | number()]], Threads, Donated) -> [[Tensor]] | stale | {waiting, Run}: runs all
   * partitions, with one list of arguments and of results for each, whose results are on the device of its number.
   * Donated is a set of arguments of each partition, bit i for the i-th from 0. Moves to a dirty scheduler when it may
   * take long. */
  group_call call;
  ts_nif_args args;
  ERL_NIF_TERM lists;
  if (!get_program(env, argv[0], &call)) return ts_nif_executable_missing(env, argv[0]);
  const ts_loaded *executable = call.executable;
  TS_NIF_TRY(env, ts_nif_turn_check(env));
  if (!executable->is_short)
    return executable->waits ? run_on_this_scheduler(env, argv) : ts_nif_run_move(env, run_dirty, argc, argv);
  TS_NIF_TRY(env, get_call(env, argv, NULL, &call, &args));
  TS_NIF_TRY(env, ts_nif_run_group_now(env, call.executable, &args, call.threads, &lists));
  ts_nif_spend(env, executable);
  return ts_nif_profiled(env, ts_nif_with_pressure(env, lists));
}

/* As much of a text as a header has. */
static bool get_text(ErlNifEnv *env, ERL_NIF_TERM term, char out[static TS_CARRIER_TEXT]) {
  ErlNifBinary given;
  if (!enif_inspect_binary(env, term, &given)) return false;
  size_t size = given.size < TS_CARRIER_TEXT ? given.size : TS_CARRIER_TEXT - 1;
  memcpy(out, given.data, size);
  out[size] = 0;
  return true;
}

/* {Number, Program, Name, Milliseconds}. */
static bool get_meeting(ErlNifEnv *env, ERL_NIF_TERM term, ERL_NIF_TERM *number, ts_nif_call *out) {
  const ERL_NIF_TERM *items;
  int arity;
  ErlNifUInt64 program;
  ErlNifSInt64 milliseconds;
  if (!enif_get_tuple(env, term, &arity, &items) || arity != 4 || !enif_get_uint64(env, items[1], &program) ||
      !get_text(env, items[2], out->name) || !enif_get_int64(env, items[3], &milliseconds) || milliseconds < 0)
    return false;
  *number = items[0];
  out->program = program;
  out->meet_ns = milliseconds < INT64_MAX / 1000000 ? milliseconds * 1000000 : INT64_MAX;
  return true;
}

static ts_status get_run(ErlNifEnv *env, ERL_NIF_TERM term, ts_nif_call *out) {
  ErlNifUInt64 run;
  ERL_NIF_TERM number = term;
  out->carrier = ts_nif_rank_carrier();
  if (!out->carrier) return ts_error(TS_FAILED_PRECONDITION, "this process is no rank of a job of MPI");
  if ((enif_is_tuple(env, term) && !get_meeting(env, term, &number, out)) || !enif_get_uint64(env, number, &run))
    return ts_nif_expected(env, "a run's number, or {Number, Program, Name, Milliseconds}", term);
  out->run = run;
  return TS_SUCCESS;
}

ERL_NIF_TERM ts_nif_run_rank(ErlNifEnv *env, int argc, const ERL_NIF_TERM argv[]) {
  /* run_rank(Executable, [[Tensor | number()]], Threads, Donated, Number | {Number, Program, Name, Milliseconds}) ->
   * {waiting, Run}: begins a run of the partitions of this rank of a job, for run_resume/1, which then returns as
   * run_group/4, or {waiting, Run}. If Run is dropped, the run ends on all ranks. The other ranks call it with the same
   * number of the run (no other run of the job has it) and the same number of the program. They must come within
   * Milliseconds; 0: in any time. The name is for errors. */
  group_call call;
  ts_nif_args args;
  ts_nif_call long_call = {0};
  ERL_NIF_TERM run;
  (void)argc;
  if (!get_program(env, argv[0], &call)) return ts_nif_executable_missing(env, argv[0]);
  TS_NIF_TRY(env, get_run(env, argv[4], &long_call));
  ts_status status = ts_nif_run_new(env, &run);
  if (!status) status = get_call(env, argv, long_call.carrier, &call, &args);
  if (status) {
    ts_status_free(ts_group_refuse(long_call.carrier, long_call.run, status));
    return ts_nif_error(env, status);
  }
  long_call.threads = call.threads;
  long_call.partitions = call.partitions;
  long_call.profile = ts_nif_profile(env);
  return ts_nif_run_long(env, run, call.executable, &args, &long_call);
}

/* The code of that name. */
static ts_code get_code(ErlNifEnv *env, ERL_NIF_TERM name) {
  for (int code = TS_INVALID_ARGUMENT; code < TS_INTERNAL; code++)
    if (enif_is_identical(name, enif_make_atom(env, ts_code_name((ts_code)code)))) return (ts_code)code;
  return TS_INTERNAL;
}

ERL_NIF_TERM ts_nif_run_refuse(ErlNifEnv *env, int argc, const ERL_NIF_TERM argv[]) {
  /* run_refuse(Run, Code :: atom(), Text :: binary()) -> ok: instead of run_rank/5, if this rank cannot begin: the run
   * ends on all ranks with that error */
  ts_nif_call call = {0};
  char text[TS_CARRIER_TEXT];
  (void)argc;
  TS_NIF_TRY(env, get_run(env, argv[0], &call));
  if (!get_text(env, argv[2], text)) return ts_nif_error(env, ts_nif_expected(env, "a text", argv[2]));
  ts_status why = ts_error(get_code(env, argv[1]), "%s", text), status = ts_group_refuse(call.carrier, call.run, why);
  ts_status_free(why);
  TS_NIF_TRY(env, status);
  return ts_atom.ok_;
}
