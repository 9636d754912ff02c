/* A compiled program: an immutable list of steps over planned memory.
 * Re-entrant: any number of threads may run it at once, without a lock. */
#ifndef TS_EXEC_EXECUTABLE_H
#define TS_EXEC_EXECUTABLE_H

#include "base/text.h"
#include "ir/graph.h"
#include "tensor/buffer.h"

#include <stdatomic.h>

typedef struct ts_executable ts_executable;

typedef struct ts_compile_options {
  /* Once it is true, compiling ends with TS_CANCELLED, when LLVM has ended the kernels it has begun. May be NULL. */
  const _Atomic bool *cancel;
  bool no_fusion;       /* each op its own kernel */
  bool no_simplify;     /* the graph as given (then fused) */
  bool at_hand;         /* nothing that may take long: no program where a kernel has to be made, or much to be folded */
  bool general_kernels; /* for tests: more general kernels than the shapes ask for, with the same bits */
} ts_compile_options;

/* What others may ask of a run, from any thread. Generated code reads the two at once. */
typedef struct ts_run_control {
  _Alignas(2) _Atomic bool cancel; /* to end with TS_CANCELLED */
  _Atomic bool pause;              /* to return from ts_execution_advance before it is done; others ignore it */
} ts_run_control;

typedef struct ts_run_options {
  const ts_run_control *control; /* may be NULL */
  int threads;                   /* at most this many; 0: all */
  uint64_t donated;              /* bit i: argument i's memory may become a result's, if it is unique; the
                                    run takes the reference of a donated argument on success */
  ts_pool *pool;                 /* NULL: the default */
  bool checked;                  /* the arguments are known to have the parameters' types and shapes */
} ts_run_options;

typedef struct ts_executable_stats {
  int64_t steps, kernels, kernels_compiled; /* compiled: not found in any cache */
  int64_t temp_bytes;                       /* of one run, besides arguments and results */
  int64_t result_bytes;
  int64_t live_peak_bytes;              /* largest sum of live bytes over the steps, arguments included */
  int64_t planned_peak_bytes;           /* what the plan takes: arguments, results, temporaries */
  int64_t kept_bytes;                   /* what the executable itself takes, but for kernels and constants */
  int64_t cost_ns;                      /* estimated, one thread; INT64_MAX when a loop's trip count is unknown */
  int64_t pass_ns, lower_ns, kernel_ns; /* where compiling took its time */
} ts_executable_stats;

/* Compiles; `graph` is copied as needed and may go. NULL options: defaults. `*out` is NULL, without an error, when it
 * should be done at hand and cannot. */
ts_status ts_executable_create(const ts_graph *graph, const ts_compile_options *options, ts_executable **out);
void ts_executable_retain(ts_executable *executable);
void ts_executable_release(ts_executable *executable);

size_t ts_executable_param_count(const ts_executable *executable);
size_t ts_executable_result_count(const ts_executable *executable);
/* One for each, and the same one for many that are equal. */
const ts_type *const *ts_executable_param_types(const ts_executable *executable);
const ts_type *const *ts_executable_result_types(const ts_executable *executable);
void ts_executable_get_stats(const ts_executable *executable, ts_executable_stats *out);
int64_t ts_executable_cost_ns(const ts_executable *executable); /* as in the stats */
/* True when a run is short enough for a normal scheduler (tens of microseconds, more where it is one short loop). */
bool ts_executable_is_short(const ts_executable *executable);
/* Kernels, costs and memory plan for people. */
ts_status ts_executable_explain(const ts_executable *executable, ts_text *out);

/* Runs: arguments must have the parameters' types and shapes (checked). `out_results` gets one
 * reference each. On failure nothing is returned and no argument is taken. */
ts_status ts_executable_run(const ts_executable *executable, ts_buffer *const *args, size_t arg_count,
                            const ts_run_options *options, ts_buffer **out_results);

/* A run that can be left and taken up again, by one thread at a time. Arguments, what the options point to and the
 * executable must live until it has ended. */
typedef struct ts_execution ts_execution;
ts_status ts_execution_create(const ts_executable *executable, ts_buffer *const *args, size_t arg_count,
                              const ts_run_options *options, ts_execution **out);
/* Goes on. *out_done is false when it was asked to pause; then it may be called again. It pauses between steps and
 * between iterations, but not within a loop that is within one compiled whole. */
ts_status ts_execution_advance(ts_execution *execution, bool *out_done);
/* Frees it. `out_results` as of ts_executable_run, after it was done; NULL gives up. NULL for `execution` is fine. */
ts_status ts_execution_end(ts_execution *execution, ts_buffer **out_results);

#endif
