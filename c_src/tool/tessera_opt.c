/* tessera-opt: reads a graph's text, runs the named passes on it in order, and
 * prints what comes out, or compiles and runs it: usage() below, docs/tessera-opt.md.
 * Exits 1 with a message when the text, a pass or the run is wrong, 2 on misuse. */
#include "base/text.h"
#include "ir/graph.h"
#include "ir/stablehlo.h"
#include "jit/jit.h"
#include "kernel/ref.h"
#include "pass/pass.h"
#include "shard/shard.h"
#include "shard/varying.h"
#include "tool/opt_run.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* A step replaces the graph by another one, or leaves it unchanged. */
typedef ts_status (*step_fn)(ts_graph **inout);

typedef struct step {
  const char *name;
  const char *help;
  step_fn run;
} step;

static ts_status print_as(const ts_graph *graph, ts_status (*print)(const ts_graph *, ts_text *)) {
  ts_text text = {0};
  char *string;
  ts_status status = print(graph, &text);
  if (status) {
    ts_text_deinit(&text);
    return status;
  }
  TS_TRY(ts_text_finish(&text, &string));
  fputs(string, stdout);
  ts_free(string);
  return TS_SUCCESS;
}

static ts_status print_graph(ts_graph **inout) { return print_as(*inout, ts_graph_print); }

static ts_status verify_graph(ts_graph **inout) { return ts_graph_verify(*inout); }

static void replace(ts_graph **inout, ts_graph *next) {
  ts_graph_destroy(*inout);
  *inout = next;
}

static ts_status propagate(ts_graph **inout) {
  ts_graph *next = NULL;
  TS_TRY(ts_shard_annotate(*inout, &next));
  replace(inout, next);
  return TS_SUCCESS;
}

static ts_status print_report(const ts_graph *graph, const ts_shard_report *report) {
  ts_text text = {0};
  ts_status status = ts_shard_print_report(graph, report, &text);
  if (!status) fwrite(text.data, 1, text.length, stdout);
  ts_text_deinit(&text);
  return status;
}

static ts_status partition(ts_graph **inout) {
  ts_graph *next = NULL;
  TS_TRY(ts_shard_partition(*inout, NULL, NULL, &next));
  replace(inout, next);
  return TS_SUCCESS;
}

static ts_status report_partition(ts_graph **inout) {
  ts_graph *next = NULL;
  ts_shard_report report = {0};
  ts_status status = ts_shard_partition(*inout, NULL, &report, &next);
  if (!status) status = print_report(next, &report);
  ts_shard_report_deinit(&report);
  if (status)
    ts_graph_destroy(next);
  else
    replace(inout, next);
  return status;
}

static ts_status report_combined(ts_graph **inout) {
  ts_graph *next = NULL;
  TS_TRY(ts_varying_check(*inout));
  TS_TRY(ts_shard_combine(*inout, &next));
  replace(inout, next);
  return print_report(next, NULL);
}

static const step steps[] = {
    {"print", "print the graph here too", print_graph},
    {"verify", "check the graph (done after reading it and at the end in any case)", verify_graph},
    {"propagate", "find the shardings of all values of a program with a mesh", propagate},
    {"partition", "make the program of one partition, with collectives", partition},
    {"report", "the same, and print what is sent and what is replicated", report_partition},
    {"combine", "join the messages of a program of one partition, and print what is sent", report_combined},
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
  if (!file) return ts_error(TS_INVALID_ARGUMENT, "cannot open %s: %s", path, strerror(errno));
  ts_status status = read_all(file, out);
  fclose(file);
  return status;
}

typedef struct options {
  const char *path, *passes, *dump;
  bool stablehlo;
  ts_opt_run run;
} options;

static bool runs(const options *o) { return o->run.run || o->run.check || o->run.explain || o->dump; }

static ts_status transform(ts_graph **inout, const options *o) {
  TS_TRY(ts_graph_verify(*inout));
  TS_TRY(run_steps(o->passes, inout));
  TS_TRY(ts_graph_verify(*inout));
  if (runs(o)) return ts_opt_run_graph(*inout, &o->run);
  return print_as(*inout, o->stablehlo ? ts_graph_print_stablehlo : ts_graph_print);
}

static ts_status process(const options *o) {
  ts_text text = {0};
  ts_graph *graph = NULL;
  ts_status status = read_file(o->path, &text);
  if (!status) status = ts_graph_parse(text.data, text.length, &graph);
  if (!status) status = transform(&graph, o);
  ts_graph_destroy(graph);
  ts_text_deinit(&text);
  return status;
}

static int usage(FILE *out, int code) {
  fputs("usage: tessera-opt [OPTION...] [FILE]\n"
        "Reads a graph's text (standard input without FILE), runs passes on it, and prints it, or:\n"
        "  --run             compile it, run it and print the results\n"
        "  --ref             the same by the interpreter, without compiling\n"
        "  --check           compile it, run it and compare with the interpreter\n"
        "  --partitions      run, or check, all partitions of a program with a mesh, by the interpreter\n"
        "  --stablehlo       print it as a module of StableHLO\n"
        "  --explain         compile it and print steps, kernels, costs and memory plan\n"
        "  --dump=WHAT,...   compile it without caches and print what is named to standard error:\n"
        "                    graph, passes, kernels, llvm, asm, plan\n"
        "  --kernels         the same as --dump=kernels\n"
        "  --input=N,...     numbers of the next argument, repeated as needed; others are made up\n"
        "  --seed=N          of the made-up numbers\n"
        "  --pass=NAME,...   passes to run before:\n",
        out);
  for (int i = 0; i < STEP_COUNT; i++) fprintf(out, "    %-9s %s\n", steps[i].name, steps[i].help);
  for (const ts_pass *pass = ts_passes; pass->name; pass++) fprintf(out, "    %s\n", pass->name);
  return code;
}

/* The text after `name` when `arg` begins with that. */
static const char *after(const char *arg, const char *name) {
  size_t length = strlen(name);
  return strncmp(arg, name, length) == 0 ? arg + length : NULL;
}

static bool parse_dump(const char *list, const char **out) {
  static const char *const names[] = {"graph", "passes", "kernels", "llvm", "asm", "plan"};
  *out = list;
  for (;;) {
    size_t length = strcspn(list, ","), i = 0, count = sizeof names / sizeof *names;
    while (i < count && (strlen(names[i]) != length || memcmp(names[i], list, length) != 0)) i++;
    if (i == count) return false;
    if (!list[length]) return true;
    list += length + 1;
  }
}

static bool parse_seed(const char *text, uint64_t *out) {
  char *end;
  errno = 0;
  *out = strtoull(text, &end, 10);
  return *text >= '0' && *text <= '9' && !*end && !errno;
}

static bool parse_option(const char *arg, options *o) {
  const char *text;
  if (strcmp(arg, "--run") == 0)
    o->run.run = true;
  else if (strcmp(arg, "--ref") == 0)
    o->run.run = o->run.ref = true;
  else if (strcmp(arg, "--check") == 0)
    o->run.check = true;
  else if (strcmp(arg, "--explain") == 0)
    o->run.explain = true;
  else if (strcmp(arg, "--partitions") == 0)
    o->run.run = o->run.partitions = true;
  else if (strcmp(arg, "--stablehlo") == 0)
    o->stablehlo = true;
  else if (strcmp(arg, "--kernels") == 0)
    o->dump = "kernels";
  else if ((text = after(arg, "--dump=")))
    return parse_dump(text, &o->dump);
  else if ((text = after(arg, "--pass=")))
    o->passes = text;
  else if ((text = after(arg, "--seed=")))
    return parse_seed(text, &o->run.seed);
  else if ((text = after(arg, "--input=")))
    return ts_status_consume_ok(TS_VEC_PUSH(&o->run.inputs, text));
  else if (o->path || (arg[0] == '-' && arg[1]))
    return false;
  else
    o->path = arg;
  return true;
}

static int run(const options *o) {
  if (o->dump) {
    setenv("TESSERA_DUMP", o->dump, 1);
    setenv("TESSERA_CACHE_DIR", "", 1);
  }
  ts_status status = process(o);
  if (!status) return 0;
  fflush(stdout);
  fprintf(stderr, "error: %s\n", ts_status_message(status));
  ts_status_free(status);
  return 1;
}

int main(int argc, char **argv) {
  options o = {.passes = ""};
  int code = -1;
  for (int i = 1; i < argc && code < 0; i++) {
    if (strcmp(argv[i], "--help") == 0)
      code = usage(stdout, 0);
    else if (!parse_option(argv[i], &o))
      code = usage(stderr, 2);
  }
  if (!o.path) o.path = "-";
  if (code < 0) code = run(&o);
  TS_VEC_FREE(&o.run.inputs);
  ts_jit_stop(); /* no thread may be in LLVM while exit() destroys LLVM's objects */
  return code;
}
