/* A compiled program: an immutable list of steps over planned memory. Re-entrant: any number of threads may run it at
 * once, without a lock. */
#ifndef TS_EXEC_EXECUTABLE_H
#define TS_EXEC_EXECUTABLE_H

#include "base/bits.h"
#include "base/cancel.h"
#include "base/text.h"
#include "ir/graph.h"
#include "tensor/buffer.h"

#include <stdatomic.h>

typedef struct ts_executable ts_executable;

typedef struct ts_compile_options {
  /* Once it is true, compilation ends with TS_CANCELLED, after the kernels that LLVM has begun. May be NULL. */
  const _Atomic bool *cancel;
  bool no_fusion;       /* each op is a kernel of its own */
  bool no_simplify;     /* without the simplifying passes */
  bool nonblocking;     /* immediate: fails rather than compile a kernel or fold a large constant */
  bool general_kernels; /* for tests: kernels more general than the shapes require, with the same bits */
} ts_compile_options;

typedef struct ts_run_options {
  const ts_run_control *control; /* may be NULL */
  int threads;                   /* at most this many; 0: all */
  ts_bits donated;               /* argument i's memory may become a result's, if it is unique; the run takes the
                                    reference of a donated argument on success, and else says whether it is `spent` */
  ts_pool *pool;                 /* NULL: the default */
  struct ts_profile *profile;    /* gets the times of the steps; NULL: none does */
  uint32_t partition;            /* which the profile notes; of a run by itself 0 */
  struct ts_device *device;      /* the device of the results; only a donated argument on it may become a result */
  bool checked;                  /* the arguments are known to have the parameters' types and shapes */
  void (*ready)(
      void *context); /* of a run that can be resumed: called by another thread once a run that waits
                         (TS_RUN_WAITING) may be advanced. NULL: it does not wait, but calls foreign code itself */
  void *context;
} ts_run_options;

typedef struct ts_executable_stats {
  int64_t steps, kernels, kernels_compiled; /* compiled: not found in any cache */
  int64_t epilogues;                        /* steps whose kernels run on the parts of a routine's result */
  int64_t temp_bytes;                       /* of one run, without arguments and results */
  int64_t result_bytes;
  int64_t live_peak_bytes;              /* largest sum of live bytes over the steps, arguments included */
  int64_t planned_peak_bytes;           /* total of the plan: arguments, results, temporaries */
  int64_t kept_bytes;                   /* size of the executable without kernels and constants */
  int64_t cost_ns;                      /* estimated, one thread; INT64_MAX when a loop's trip count is unknown */
  int64_t pass_ns, lower_ns, kernel_ns; /* time of each part of compilation */
} ts_executable_stats;

/* Compiles. The graph may be destroyed afterwards. NULL options: defaults. With `nonblocking`, `*out` is NULL without
 * an error when immediate compilation is not possible. */
ts_status ts_executable_create(const ts_graph *graph, const ts_compile_options *options, ts_executable **out);
void ts_executable_retain(ts_executable *executable);
void ts_executable_release(ts_executable *executable);

size_t ts_executable_param_count(const ts_executable *executable);
size_t ts_executable_result_count(const ts_executable *executable);
/* One pointer for each; equal types share one object. */
const ts_type *const *ts_executable_param_types(const ts_executable *executable);
const ts_type *const *ts_executable_result_types(const ts_executable *executable);
void ts_executable_get_stats(const ts_executable *executable, ts_executable_stats *out);
int64_t ts_executable_cost_ns(const ts_executable *executable); /* ts_executable_stats.cost_ns */
/* True when some step is a callback: then only a ts_execution can run the program. */
bool ts_executable_calls_back(const ts_executable *executable);
/* The partitions that run the program together, each on a device of its own: 1 for programs without a partitioned mesh
 * or collectives. More of them run as a group (group/group.h). */
int32_t ts_executable_partitions(const ts_executable *executable);
/* True when the last parameter is a partition's coordinates: a group provides these. */
bool ts_executable_has_coordinates(const ts_executable *executable);
/* True when by its estimate a run is short enough for a normal scheduler (tens of microseconds, more for a loop over
 * single elements). Of partitions the sum counts, since one thread may have to run all of them. */
bool ts_executable_is_short(const ts_executable *executable);
/* What its runs have taught; owned by the executable. NULL: nothing, and the estimate decides. */
struct ts_pace *ts_executable_pace(const ts_executable *executable);
/* True if a run that stays on its caller's scheduler may take long: it has to be one that can be stopped. */
bool ts_executable_may_stop(const ts_executable *executable);
/* Appends kernels, costs and memory plan as readable text. */
ts_status ts_executable_explain(const ts_executable *executable, ts_text *out);

/* Runs the program. The arguments must have the parameters' types and shapes (checked unless the options say so).
 * `out_results` gets one reference each. On failure no result is returned and no argument is taken. */
ts_status ts_executable_run(const ts_executable *executable, ts_buffer *const *args, size_t arg_count,
                            const ts_run_options *options, ts_buffer **out_results);

/* A run that can be paused and resumed, by one thread at a time. Arguments, the options' pointers and the executable
 * must live until ts_execution_end. */
typedef struct ts_execution ts_execution;

/* Why ts_execution_advance returned. Between two calls a run holds no thread. */
typedef enum ts_run_state {
  TS_RUN_DONE,
  TS_RUN_PAUSED,     /* it was asked to pause; the next ts_execution_advance resumes it */
  TS_RUN_CALLBACK,   /* it waits for ts_execution_answer */
  TS_RUN_COLLECTIVE, /* one partition of a group: it waits for the others (group.c) */
  TS_RUN_WAITING     /* it waits for foreign code (exec/away.h), or, a group, for the other ranks (group/group.h):
                        `ready` is called once, and then it may be advanced, not before and not ended either */
} ts_run_state;

/* A callback that the caller of a run must answer. Valid until the answer. */
typedef struct ts_run_call {
  uint32_t index; /* of the op callback */
  uint32_t operand_count, result_count;
  const ts_type *const *operand_types, *const *result_types;
} ts_run_call;

/* An error if these are not results of the call's number and types. */
ts_status ts_run_call_check(const ts_run_call *call, ts_buffer *const *results, size_t count);

ts_status ts_execution_create(const ts_executable *executable, ts_buffer *const *args, size_t arg_count,
                              const ts_run_options *options, ts_execution **out);
/* Starts or resumes the run. It pauses between steps and between iterations, but not in an inner loop of a step that is
 * compiled whole. */
ts_status ts_execution_advance(ts_execution *execution, ts_run_state *out_state);
/* After TS_RUN_CALLBACK: the call, and the contents of an operand, read-only and valid until the answer. */
void ts_execution_get_call(const ts_execution *execution, ts_run_call *out);
const void *ts_execution_operand(const ts_execution *execution, uint32_t i);
/* Copies the results of the callback, one for each of ts_run_call, and checks their types; then the run may be
 * advanced. */
ts_status ts_execution_answer(ts_execution *execution, ts_buffer *const *results, size_t count);
/* Frees the run. `out_results` as in ts_executable_run, after TS_RUN_DONE; NULL abandons the run. `execution` may be
 * NULL. */
ts_status ts_execution_end(ts_execution *execution, ts_buffer **out_results);

#endif
