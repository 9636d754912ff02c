/* The passes over graphs. Each makes a new graph from a graph, or returns an error and leaves the input unchanged; the
 * caller owns both. Passes are pure and thread-safe. The pipeline is a short flat list in pipeline.c, because users
 * wait for every walk over a graph. The verifier runs after every pass when `verify` is set or TESSERA_VERIFY=1. */
#ifndef TS_PASS_PASS_H
#define TS_PASS_PASS_H

#include "ir/graph.h"

#include <stdatomic.h>

typedef struct ts_pass_options {
  /* Evaluates a closed graph without parameters, for constant folding; NULL: no folding. It must give the bits that a
   * run would give, or decline with TS_UNIMPLEMENTED. */
  ts_status (*evaluate)(void *context, const ts_graph *graph, ts_buffer **out_results);
  void *context;
  int64_t fold_bytes;         /* limit for the results of folding; 0: 64 KB */
  const _Atomic bool *cancel; /* when true, the pass ends with TS_CANCELLED; may be NULL */
  bool no_fusion;             /* no fusion ops; tests compare fused code with this */
  bool verify;
} ts_pass_options;

typedef struct ts_pass {
  const char *name;
  ts_status (*run)(const ts_graph *in, const ts_pass_options *options, ts_graph **out);
} ts_pass;

/* All passes, ended by a NULL name: the passes of the pipeline, parts of them for tests and tools, and the pipeline. */
extern const ts_pass ts_passes[];
const ts_pass *ts_pass_find(const char *name, size_t length);

/* Runs normalize, hoist where there is a loop, dots where a contraction or top_k needs it, and fuse, or dce without
 * fusion. TESSERA_DUMP=passes prints the graph after each pass to stderr. */
ts_status ts_pipeline_run(const ts_graph *in, const ts_pass_options *options, ts_graph **out);

/* In one walk: inline, expand, and the rules of simplify, fold and cse on their results. */
ts_status ts_pass_normalize(const ts_graph *in, const ts_pass_options *options, ts_graph **out);
/* Moves what each iteration of a loop computes again to before the loop (hoist.c). False from ts_hoist_applies: there
 * is no loop. */
ts_status ts_pass_hoist(const ts_graph *in, const ts_pass_options *options, ts_graph **out);
bool ts_hoist_applies(const ts_graph *graph);
/* dot_general to [batch,m,k]x[batch,k,n] forms; eliminates dead ops. */
ts_status ts_pass_dots(const ts_graph *in, const ts_pass_options *options, ts_graph **out);
/* Fusion; eliminates dead ops. */
ts_status ts_pass_fuse(const ts_graph *in, const ts_pass_options *options, ts_graph **out);

/* Replaces calls by the ops of their regions. */
ts_status ts_pass_inline(const ts_graph *in, const ts_pass_options *options, ts_graph **out);
/* Exact algebraic and shape rules. */
/* Computes with small types in wider ones (widen.c). */
ts_status ts_pass_widen(const ts_graph *in, const ts_pass_options *options, ts_graph **out);
ts_status ts_pass_simplify(const ts_graph *in, const ts_pass_options *options, ts_graph **out);
/* Constant folding. */
ts_status ts_pass_fold(const ts_graph *in, const ts_pass_options *options, ts_graph **out);
ts_status ts_pass_cse(const ts_graph *in, const ts_pass_options *options, ts_graph **out);
ts_status ts_pass_dce(const ts_graph *in, const ts_pass_options *options, ts_graph **out);
/* Replaces a general reduce by a while. */
ts_status ts_pass_expand(const ts_graph *in, const ts_pass_options *options, ts_graph **out);
/* Replaces factorizations that StableHLO has no op for by loops: for the compilers of other devices, not a part of the
 * pipeline. False from ts_factor_loops_apply: the graph has none. */
ts_status ts_pass_factor_loops(const ts_graph *in, const ts_pass_options *options, ts_graph **out);
bool ts_factor_loops_apply(const ts_graph *graph);
/* Replaces ops that the compilers of other devices get wrong (guard.c). Not a part of the pipeline either. */
ts_status ts_pass_guard(const ts_graph *in, const ts_pass_options *options, ts_graph **out);

#endif
