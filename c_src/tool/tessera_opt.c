/* tessera-opt: reads a graph's text, runs the named steps on it in order, and
 * prints what comes out.
 *   tessera-opt [--pass=NAME[,NAME...]] [FILE]
 * FILE defaults to standard input. Exits 1 with a message when the text or a
 * step is wrong, 2 on misuse. */
#include "base/text.h"
#include "ir/graph.h"
#include "kernel/ref.h"
#include "pass/pass.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

/* A step replaces the graph by another one, or leaves it. */
typedef ts_status (*step_fn)(ts_graph **inout);

typedef struct step {
  const char *name;
  const char *help;
  step_fn run;
} step;

static ts_status print_graph(ts_graph **inout) {
  ts_text text = {0};
  char *string;
  ts_status status = ts_graph_print(*inout, &text);
  if (status) {
    ts_text_deinit(&text);
    return status;
  }
  TS_TRY(ts_text_finish(&text, &string));
  fputs(string, stdout);
  ts_free(string);
  return TS_SUCCESS;
}

static ts_status verify_graph(ts_graph **inout) { return ts_graph_verify(*inout); }

static const step steps[] = {
    {"print", "print the graph here too", print_graph},
    {"verify", "check the graph (done after reading it and at the end in any case)", verify_graph},
};

enum { STEP_COUNT = sizeof steps / sizeof steps[0] };

static ts_status evaluate(void *context, const ts_graph *graph, ts_buffer **out_results) {
  (void)context;
  return ts_ref_run(graph, NULL, 0, ts_pool_default(), out_results);
}

static ts_status run_pass(const ts_pass *pass, ts_graph **inout) {
  ts_pass_options options = {.evaluate = evaluate};
  ts_graph *next;
  TS_TRY(ts_error_context(pass->run(*inout, &options, &next), "%s", pass->name));
  ts_graph_destroy(*inout);
  *inout = next;
  return TS_SUCCESS;
}

static ts_status run_step(const char *name, size_t length, ts_graph **inout) {
  for (int i = 0; i < STEP_COUNT; i++) {
    if (strlen(steps[i].name) != length || memcmp(steps[i].name, name, length) != 0) continue;
    ts_status status = steps[i].run(inout);
    return status ? ts_error_context(status, "%s", steps[i].name) : TS_SUCCESS;
  }
  const ts_pass *pass = ts_pass_find(name, length);
  if (pass) return run_pass(pass, inout);
  return ts_error(TS_INVALID_ARGUMENT, "there is no pass '%.*s'", (int)length, name);
}

static ts_status run_steps(const char *names, ts_graph **inout) {
  while (*names) {
    size_t length = strcspn(names, ",");
    TS_TRY(run_step(names, length, inout));
    names += length + (names[length] == ',');
  }
  return TS_SUCCESS;
}

static ts_status read_all(FILE *file, ts_text *out) {
  char chunk[1 << 14];
  size_t count;
  while ((count = fread(chunk, 1, sizeof chunk, file)) > 0) ts_text_append_n(out, chunk, count);
  if (ferror(file)) return ts_error(TS_DATA_LOSS, "cannot read: %s", strerror(errno));
  return out->failed ? ts_error_no_memory() : TS_SUCCESS;
}

static ts_status read_file(const char *path, ts_text *out) {
  if (strcmp(path, "-") == 0) return read_all(stdin, out);
  FILE *file = fopen(path, "rb");
  if (!file) return ts_error(TS_INVALID_ARGUMENT, "cannot open: %s", strerror(errno));
  ts_status status = read_all(file, out);
  fclose(file);
  return status;
}

static ts_status transform(ts_graph **inout, const char *passes) {
  TS_TRY(ts_graph_verify(*inout));
  TS_TRY(run_steps(passes, inout));
  TS_TRY(ts_graph_verify(*inout));
  return print_graph(inout);
}

static ts_status process(const char *path, const char *passes) {
  ts_text text = {0};
  ts_graph *graph = NULL;
  ts_status status = read_file(path, &text);
  if (!status) status = ts_graph_parse(text.data, text.length, &graph);
  if (!status) status = transform(&graph, passes);
  ts_graph_destroy(graph);
  ts_text_deinit(&text);
  return status;
}

static int usage(FILE *out, int code) {
  fputs("usage: tessera-opt [--pass=NAME[,NAME...]] [FILE]\npasses:\n", out);
  for (int i = 0; i < STEP_COUNT; i++) fprintf(out, "  %-10s %s\n", steps[i].name, steps[i].help);
  for (const ts_pass *pass = ts_passes; pass->name; pass++) fprintf(out, "  %s\n", pass->name);
  return code;
}

int main(int argc, char **argv) {
  const char *path = NULL, *passes = "";
  for (int i = 1; i < argc; i++) {
    if (strcmp(argv[i], "--help") == 0) return usage(stdout, 0);
    if (strncmp(argv[i], "--pass=", 7) == 0) {
      passes = argv[i] + 7;
    } else if (path || (argv[i][0] == '-' && argv[i][1])) {
      return usage(stderr, 2);
    } else {
      path = argv[i];
    }
  }
  ts_status status = process(path ? path : "-", passes);
  if (!status) return 0;
  fflush(stdout);
  fprintf(stderr, "error: %s\n", ts_status_message(status));
  ts_status_free(status);
  return 1;
}
