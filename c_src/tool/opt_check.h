/* Comparing results, of one run or of each mode of compilation and each kind of run. For one thread. */
#ifndef TS_TOOL_OPT_CHECK_H
#define TS_TOOL_OPT_CHECK_H

#include "exec/executable.h"
#include "tool/opt_args.h"

/* Fails unless both agree within that many units in the last place; 0: equal bits, but any NaN equals another;
 * TS_COMPARE_BITS: equal bits. */
ts_status ts_opt_compare(const ts_opt_tensors *got, const ts_opt_tensors *expected, int64_t ulps);

/* The graph, compiled without fusion and simplification, run by one thread. */
ts_status ts_opt_run_plain(const ts_graph *graph, const ts_opt_tensors *args, ts_opt_tensors *out);

typedef struct ts_opt_expected {
  const ts_opt_tensors *args, *results;
  int64_t ulps;
} ts_opt_expected;

/* Compiles the graph with and without fusion and simplification, and with general kernels; runs each twice with all
 * threads and with one, with donated arguments, checked arguments and a control. */
ts_status ts_opt_check_modes(const ts_graph *graph, const ts_opt_expected *expected);

#endif
