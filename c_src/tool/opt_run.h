/* The parts of tessera-opt besides passes: compiles and runs a graph, compares with the interpreter, explains. For one
 * thread. */
#ifndef TS_TOOL_OPT_RUN_H
#define TS_TOOL_OPT_RUN_H

#include "ir/graph.h"

#include <stdint.h>

typedef struct ts_opt_run {
  bool run;                    /* print the results */
  bool check;                  /* compare the results with the interpreter's */
  bool explain;                /* print steps, kernels, costs and memory plan */
  bool ref;                    /* use the interpreter's results */
  bool partitions;             /* use those of all partitions, run by the interpreter */
  uint64_t seed;               /* for generated arguments */
  TS_VEC(const char *) inputs; /* numbers of the first arguments, separated by commas and repeated as needed */
} ts_opt_run;

ts_status ts_opt_run_graph(const ts_graph *graph, const ts_opt_run *options);

#endif
