/* Runs of one program or of the partitions of one (nif_group.c). A run that may take long is a resource while it lasts:
 * it monitors its caller and is cancelled when the caller dies. Thread-safe; runs of one executable share no lock. */
#ifndef TS_NIF_RUN_H
#define TS_NIF_RUN_H

#include "nif/nif_executable.h"
#include "nif/run/nif_args.h"

/* A run or compilation that may take long. As a resource it is notified when its caller dies. A paused run is the only
 * reference to the call until it is resumed, so it keeps the call's arguments alive. */
typedef struct ts_nif_long_run {
  ts_run_control control;
  ErlNifMonitor monitor;
  bool watching;
  int32_t partitions; /* of a group here; 0: a run by itself */
  ErlNifPid caller;
  ts_loaded *executable;
  ts_nif_args args;
  ts_device_run *execution; /* NULL after the end, and for a run that cannot pause */
  ts_device_group *group;
  _Atomic bool is_ready; /* it may be resumed: it was begun, or the awaited ranks have come */
  _Atomic bool asks;     /* it waits for a callback's answer; the call that clears this flag may resume it */
} ts_nif_long_run;

typedef struct ts_nif_call {
  int threads;
  int32_t partitions; /* of a group here, whose arguments are one list after the other; 0: a run by itself */
  ts_device *device;  /* of a run by itself; NULL: its arguments decide */
  struct ts_profile *profile;
  /* Of a group of several ranks; see ts_group_options. It is only begun: it returns {waiting, Run}, which run_resume/1
   * resumes. Where it waits for the others, that returns {waiting, Run} again, and the caller gets the message
   * {ready, Run} and resumes it once more. */
  ts_carrier *carrier;
  uint64_t run, program;
  int64_t meet_ns;
  char name[TS_CARRIER_TEXT];
} ts_nif_call;

bool ts_nif_run_init(ErlNifEnv *env, ErlNifResourceFlags flags);

/* Runs the program on this scheduler; `out` gets the results, and the use of the arguments ends. Of `options` the
 * threads, the device and the control count. */
ts_status ts_nif_run_program(const ts_loaded *executable, ts_nif_args *args, ts_run_options *options, ts_buffer **out);
/* Charges the measured or estimated cost of a run on a normal scheduler to the calling process as reductions. */
void ts_nif_spend(ErlNifEnv *env, const ts_loaded *executable);

/* A run without a program, which watches the calling process. Only on a normal scheduler: while a dirty one executes
 * the process, a monitor of it costs signals, and for these the process's own scheduler and the VM's auxiliary thread
 * wake up several times. */
ts_status ts_nif_run_new(ErlNifEnv *env, ERL_NIF_TERM *out);
/* NULL if the term is no run. */
ts_nif_long_run *ts_nif_run_get(ErlNifEnv *env, ERL_NIF_TERM term);

enum { TS_NIF_MOST_MOVED = 4 };
typedef ERL_NIF_TERM ts_nif_function(ErlNifEnv *env, int argc, const ERL_NIF_TERM argv[]);
/* Continues a call of at most TS_NIF_MOST_MOVED arguments on a dirty scheduler, with a new run as a further argument.
 */
ERL_NIF_TERM ts_nif_run_move(ErlNifEnv *env, ts_nif_function *function, int argc, const ERL_NIF_TERM argv[]);
/* The return value of a run's function at its end: the result, once a normal scheduler has ended the watch. */
ERL_NIF_TERM ts_nif_run_return(ErlNifEnv *env, ERL_NIF_TERM run, ERL_NIF_TERM result);

/* On a dirty scheduler: runs in time slices and returns like run/4 or run_group/4. On any: begins a group of several
 * ranks. Takes the arguments over. The run is a new one. */
ERL_NIF_TERM ts_nif_run_long(ErlNifEnv *env, ERL_NIF_TERM run, ts_loaded *executable, ts_nif_args *args,
                             const ts_nif_call *call);
/* On the calling scheduler: a group that is short. */
ts_status ts_nif_run_group_now(ErlNifEnv *env, ts_loaded *executable, ts_nif_args *args, int threads,
                               ERL_NIF_TERM *out);

/* Ends a run without its results. A second call has no effect. */
void ts_nif_run_drop(ts_nif_long_run *r);
/* Resumes a run and returns like run/4: on this scheduler, or else on a dirty one. */
ERL_NIF_TERM ts_nif_run_go_on(ErlNifEnv *env, ts_nif_long_run *r, ERL_NIF_TERM term, bool here);
/* nif_answer.c: {callback, Run, Index, [Binary]} for the callback that the run waits for, with the contents of the
 * operands as in to_binary. */
ts_status ts_nif_run_make_call(ErlNifEnv *env, ts_nif_long_run *r, ERL_NIF_TERM term, ERL_NIF_TERM *out);

ERL_NIF_TERM ts_nif_run(ErlNifEnv *env, int argc, const ERL_NIF_TERM argv[]);
ERL_NIF_TERM ts_nif_run_answer(ErlNifEnv *env, int argc, const ERL_NIF_TERM argv[]);
ERL_NIF_TERM ts_nif_run_resume(ErlNifEnv *env, int argc, const ERL_NIF_TERM argv[]);
ERL_NIF_TERM ts_nif_run_abandon(ErlNifEnv *env, int argc, const ERL_NIF_TERM argv[]);

#endif
