/* Lists of tensors, and the arguments that tessera-opt runs a graph with. For one thread. */
#ifndef TS_TOOL_OPT_ARGS_H
#define TS_TOOL_OPT_ARGS_H

#include "tool/opt_run.h"

typedef struct ts_opt_tensors {
  ts_buffer **data; /* one reference each; NULL: not there yet */
  size_t count;
} ts_opt_tensors;

ts_status ts_opt_tensors_create(size_t count, ts_opt_tensors *out);
/* Releases the tensors and keeps the list. */
void ts_opt_tensors_clear(ts_opt_tensors *tensors);
void ts_opt_tensors_deinit(ts_opt_tensors *tensors);

/* The given numbers, and generated ones for the other parameters. `out` needs ts_opt_tensors_deinit in any case. */
ts_status ts_opt_args(const ts_graph *graph, const ts_opt_run *options, ts_opt_tensors *out);

#endif
