/* The parts of tessera-opt besides passes: compiles and runs a graph, checks its results, explains. For one thread. */
#ifndef TS_TOOL_OPT_RUN_H
#define TS_TOOL_OPT_RUN_H

#include "ir/graph.h"

#include <stdint.h>

/* The reference of a check: results of the graph before any pass, by the interpreter or compiled. */
typedef enum ts_opt_check {
  TS_OPT_NO_CHECK,
  TS_OPT_INTERPRETER,
  TS_OPT_PLAIN /* compiled without fusion and simplification */
} ts_opt_check;

typedef struct ts_opt_run {
  bool run;           /* print the results */
  bool explain;       /* print steps, kernels, costs and memory plan */
  bool counts;        /* print how many steps, kernels and bytes there are */
  bool ref;           /* use the interpreter's results */
  bool partitions;    /* use the results of all partitions, run by the interpreter */
  bool modes;         /* check each mode of compilation and each kind of run, too */
  bool special;       /* generated arguments have NaN, infinities and limits of integers, too */
  ts_opt_check check; /* compare the results */
  int64_t ulps;       /* the largest difference of floats; 0: equal bits (interpreter: but any NaN equals another) */
  uint64_t seed;      /* for generated arguments */
  TS_VEC(const char *) inputs; /* numbers of the first arguments, separated by commas and repeated as needed */
} ts_opt_run;

/* `original` is the graph before any pass. */
ts_status ts_opt_run_graph(const ts_graph *graph, const ts_graph *original, const ts_opt_run *options);

#endif
