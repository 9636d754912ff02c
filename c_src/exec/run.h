/* The inside of a run, for exec/. A run belongs to one thread at a time. */
#ifndef TS_EXEC_RUN_H
#define TS_EXEC_RUN_H

#include "exec/away.h"
#include "exec/profile.h"
#include "exec/steps.h"

/* A block that is being executed. `loop` is the while whose condition or body it is. */
typedef struct ts_frame {
  const ts_block *block;
  size_t next;         /* of its steps */
  const ts_step *loop; /* NULL: the block of a cond's branch or of the program */
  void **home;         /* the base pointers of the while's results before any swap */
} ts_frame;

/* A run that its program learns from (pace.h), until it ends or stops before its end. */
typedef struct ts_paced {
  ts_pace *pace; /* NULL: no program learns from it */
  int64_t began; /* ns */
  uint64_t given;
  ts_pace_way way;
} ts_paced;

typedef struct ts_run {
  const ts_executable *exe;
  void **base; /* the address of each piece of memory */
  int64_t *words;
  char *block;
  int64_t block_bytes;
  const ts_run_control *control;
  const ts_parallel *parallel;
  ts_measure *measure; /* NULL: the run has no profile */
  ts_pool *pool;
  ts_buffer *const *args; /* NULL: results may overwrite arguments, so prepared copies of these would be wrong */
  ts_paced paced;
  bool may_pause, resumed; /* resumed: in the middle of a step that is compiled whole, or of a native loop */
  bool begun;              /* steps may have written to results */
  const ts_native *native; /* the native loop that runs */
  ts_status failure;       /* of a call of the native loop */
  const ts_step *away;     /* its routine runs on a thread for foreign code, or will; NULL: no step does */
  ts_status returned;      /* the error of the last such step */
  ts_away call;
  void (*ready)(void *context); /* NULL: none leaves */
  void *context;
  const ts_step *asking; /* a CALLBACK without an answer, a COLLECTIVE, or a WHILE or COND that agrees: the run stops */
  ts_frame *frames, few[4];
  size_t depth, room;
} ts_run;

/* Contexts of at most this size live in the ts_execution itself. */
typedef union ts_small_context {
  ts_run run;
  char bytes[768 + sizeof(ts_paced)];
} ts_small_context;

struct ts_execution {
  const ts_executable *exe;
  ts_run *run;
  ts_buffer *const *args;
  ts_run_options options;
  ts_run_state state;
  ts_buffer **made, *few_made[8];
  ts_small_context small;
};

static inline const _Atomic bool *ts_run_cancel_flag(const ts_run *run) {
  return run->control ? &run->control->cancel : NULL;
}

static inline int64_t *ts_run_fill(ts_run *run, const ts_launch_memory *of, const ts_step_launch *l) {
  return ts_run_fill_words(run->base, run->words, of, l);
}

/* The address of a workspace. Without one, any valid address will do, since it is not used. */
static inline char *ts_run_scratch(const ts_run *run, ts_memory_id id) {
  return id == TS_NO_ID ? (char *)run->words : run->base[id];
}

/* ---- run.c, run_routine.c, native_run.c ---- */
ts_status ts_run_routine(ts_run *run, const ts_step *step);
/* Runs a native loop, or a part of it up to a pause. */
ts_status ts_run_native(ts_run *run, const ts_step *step);

/* Begins a run in memory of the caller's. After a failure there is nothing to end. */
ts_status ts_execution_begin(ts_execution *x, const ts_executable *exe, ts_buffer *const *args,
                             const ts_run_options *options, bool may_pause);
/* Fills `out_results` with a reference to each result, or with none after an error. */
ts_status ts_execution_hand_out(ts_execution *x, ts_buffer **out_results);
/* Undoes that. */
void ts_execution_take_back(ts_execution *x, ts_buffer **results);
/* Ends the run. `succeeded`: its results were handed out, and the donated arguments are released. Else donated
 * arguments that steps may have overwritten are marked as spent. */
void ts_execution_close(ts_execution *x, bool succeeded);

/* ---- runs of a group (group.c) ---- */
/* After TS_RUN_COLLECTIVE: whether the run continues in the loop's body, or the first branch. Not for collectives. */
bool ts_execution_predicate(const ts_execution *x);
/* Has result i of the collective at which both are in the memory of `owner`. Without memory for that it keeps its own.
 */
void ts_execution_share(ts_execution *x, const ts_execution *owner, uint32_t i);
/* Continues behind a collective whose results were written, or behind an agreed predicate. */
ts_status ts_execution_go_on(ts_execution *x);
/* An estimate of the time until the run stops again; not exact above `enough`. */
int64_t ts_execution_ahead_ns(const ts_execution *x, int64_t enough);

#endif
