#include "base/log.h"
#include "base/text.h"
#include "pass/normalize.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

const ts_pass ts_passes[] = {
    {"normalize", ts_pass_normalize},
    {"inline", ts_pass_inline},
    {"simplify", ts_pass_simplify},
    {"expand", ts_pass_expand},
    {"fold", ts_pass_fold},
    {"cse", ts_pass_cse},
    {"hoist", ts_pass_hoist},
    {"dots", ts_pass_dots},
    {"dce", ts_pass_dce},
    {"fuse", ts_pass_fuse},
    {"widen", ts_pass_widen},
    {"guard", ts_pass_guard},
    {"factor_loops", ts_pass_factor_loops},
    {"pipeline", ts_pipeline_run},
    {NULL, NULL},
};

const ts_pass *ts_pass_find(const char *name, size_t length) {
  for (const ts_pass *pass = ts_passes; pass->name; pass++) {
    if (strlen(pass->name) == length && memcmp(pass->name, name, length) == 0) return pass;
  }
  return NULL;
}

static void dump(const char *name, const ts_graph *graph) {
  ts_text text = {0};
  ts_status status = ts_graph_print(graph, &text);
  if (!status) fprintf(stderr, "// after %s\n%s", name, text.data ? text.data : "");
  ts_status_free(status);
  ts_text_deinit(&text);
}

/* TESSERA_VERIFY=1, read once: searching the environment takes as long as some passes. */
static bool verifies_all;
static pthread_once_t verify_is_read = PTHREAD_ONCE_INIT;

static void read_verify(void) {
  const char *set = getenv("TESSERA_VERIFY");
  verifies_all = set && strcmp(set, "1") == 0;
}

static bool wants_verify(const ts_pass_options *options) {
  (void)pthread_once(&verify_is_read, read_verify);
  return options->verify || verifies_all;
}

/* The state of a pipeline: `graph` is the result of the last pass, NULL before the first. */
typedef struct pipeline {
  const ts_graph *in;
  ts_graph *graph;
  const ts_pass_options *options;
  bool verify, dumps;
} pipeline;

static ts_status run_pass(pipeline *p, const char *name,
                          ts_status (*run)(const ts_graph *, const ts_pass_options *, ts_graph **)) {
  ts_graph *next;
  TS_TRY(ts_error_context(run(p->graph ? p->graph : p->in, p->options, &next), "pass %s", name));
  ts_graph_destroy(p->graph);
  p->graph = next;
  if (p->dumps) dump(name, next);
  return p->verify ? ts_error_context(ts_graph_verify(next), "after pass %s", name) : TS_SUCCESS;
}

/* Keeps the input when no rewrite applies. */
static ts_status normalize(pipeline *p) {
  bool applies = true;
  if (!p->dumps) TS_TRY(ts_error_context(ts_normalize_applies(p->in, p->options, &applies), "pass normalize"));
  return applies ? run_pass(p, "normalize", ts_pass_normalize) : TS_SUCCESS;
}

static ts_status run_passes(pipeline *p) {
  TS_TRY(normalize(p));
  if (ts_hoist_applies(p->graph ? p->graph : p->in)) TS_TRY(run_pass(p, "hoist", ts_pass_hoist));
  const ts_graph *graph = p->graph ? p->graph : p->in;
  if (ts_dots_applies(graph) || ts_order_applies(graph)) TS_TRY(run_pass(p, "dots", ts_pass_dots));
  return p->options->no_fusion ? run_pass(p, "dce", ts_pass_dce) : run_pass(p, "fuse", ts_pass_fuse);
}

ts_status ts_pipeline_run(const ts_graph *in, const ts_pass_options *options, ts_graph **out) {
  pipeline p = {.in = in, .options = options, .verify = wants_verify(options), .dumps = ts_dump_enabled("passes")};
  if (p.dumps || ts_dump_enabled("graph")) dump("nothing", in);
  ts_status status = run_passes(&p);
  if (status) {
    ts_graph_destroy(p.graph);
    p.graph = NULL;
  }
  *out = p.graph;
  return status;
}
