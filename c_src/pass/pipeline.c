#include "base/log.h"
#include "base/text.h"
#include "pass/pass.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

const ts_pass ts_passes[] = {
    {"inline", ts_pass_inline},     {"simplify", ts_pass_simplify}, {"expand", ts_pass_expand},
    {"fold", ts_pass_fold},         {"cse", ts_pass_cse},           {"dots", ts_pass_dots},
    {"simplify", ts_pass_simplify}, /* what folding and expanding left */
    {"dce", ts_pass_dce},           {"fuse", ts_pass_fuse},         {NULL, NULL},
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

static bool wants_verify(const ts_pass_options *options) {
  const char *set = getenv("TESSERA_VERIFY");
  return options->verify || (set && strcmp(set, "1") == 0);
}

static ts_status run_pass(const ts_pass *pass, const ts_pass_options *options, bool verify, ts_graph **inout) {
  ts_graph *next;
  TS_TRY(ts_error_context(pass->run(*inout, options, &next), "pass %s", pass->name));
  ts_graph_destroy(*inout);
  *inout = next;
  return verify ? ts_error_context(ts_graph_verify(next), "after pass %s", pass->name) : TS_SUCCESS;
}

ts_status ts_pipeline_run(const ts_graph *in, const ts_pass_options *options, ts_graph **out) {
  bool verify = wants_verify(options), dumps = ts_dump_enabled("passes");
  ts_graph *graph;
  *out = NULL;
  TS_TRY(ts_graph_clone(in, &graph));
  if (dumps || ts_dump_enabled("graph")) dump("nothing", graph);
  for (const ts_pass *pass = ts_passes; pass->name; pass++) {
    if (options->no_fusion && pass->run == ts_pass_fuse) continue;
    ts_status status = run_pass(pass, options, verify, &graph);
    if (status) {
      ts_graph_destroy(graph);
      return status;
    }
    if (dumps) dump(pass->name, graph);
  }
  *out = graph;
  return TS_SUCCESS;
}
