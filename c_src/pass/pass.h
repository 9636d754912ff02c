/* The passes over graphs. Each takes a graph and gives a new one (or a status,
 * leaving the input as it was); the caller owns both. Passes are pure and
 * thread-safe. The pipeline is a flat list in pipeline.c; the verifier runs
 * after every pass when `verify` is set (and with TESSERA_VERIFY=1). */
#ifndef TS_PASS_PASS_H
#define TS_PASS_PASS_H

#include "ir/graph.h"

typedef struct ts_pass_options {
  /* Evaluates a closed graph without parameters, for constant folding; NULL: no folding.
   * It must give the bits that a run would give, or decline with TS_UNIMPLEMENTED. */
  ts_status (*evaluate)(void *context, const ts_graph *graph, ts_buffer **out_results);
  void *context;
  int64_t fold_bytes; /* largest result that folding may make; 0: 64 KB */
  bool no_fusion;     /* each op on its own: what tests compare fused code with */
  bool verify;
} ts_pass_options;

typedef struct ts_pass {
  const char *name;
  ts_status (*run)(const ts_graph *in, const ts_pass_options *options, ts_graph **out);
} ts_pass;

/* In the order of the pipeline, ended by a NULL name. */
extern const ts_pass ts_passes[];
const ts_pass *ts_pass_find(const char *name, size_t length);

/* Runs the whole pipeline. With TESSERA_DUMP=passes prints the graph after each to stderr. */
ts_status ts_pipeline_run(const ts_graph *in, const ts_pass_options *options, ts_graph **out);

/* The passes (one file each). */
ts_status ts_pass_inline(const ts_graph *in, const ts_pass_options *options, ts_graph **out); /* call ops go */
ts_status ts_pass_simplify(const ts_graph *in, const ts_pass_options *options,
                           ts_graph **out); /* exact algebraic and shape rules */
ts_status ts_pass_fold(const ts_graph *in, const ts_pass_options *options, ts_graph **out); /* constant folding */
ts_status ts_pass_cse(const ts_graph *in, const ts_pass_options *options, ts_graph **out);
ts_status ts_pass_dce(const ts_graph *in, const ts_pass_options *options, ts_graph **out);
ts_status ts_pass_expand(const ts_graph *in, const ts_pass_options *options,
                         ts_graph **out); /* general reduce becomes a while */
ts_status ts_pass_dots(const ts_graph *in, const ts_pass_options *options,
                       ts_graph **out); /* dot_general to [batch,m,k]x[batch,k,n] forms */
ts_status ts_pass_fuse(const ts_graph *in, const ts_pass_options *options, ts_graph **out);

#endif
