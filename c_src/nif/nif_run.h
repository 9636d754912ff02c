/* Runs that may take long, of one program (nif_executable.c) or of the partitions of one (nif_group.c). */
#ifndef TS_NIF_RUN_H
#define TS_NIF_RUN_H

#include "nif/nif_executable.h"

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

#endif
