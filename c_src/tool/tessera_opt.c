/* tessera-opt: reads a graph's text or a program of StableHLO, runs the named passes on it in order, and prints the
 * resulting graph, or compiles and runs it: usage() below, docs/tessera-opt.md. Exits 1 with a message when the text, a
 * pass or the run is wrong, 2 on misuse. */
#include "base/log.h"
#include "base/text.h"
#include "ir/graph.h"
#include "ir/stablehlo/stablehlo.h"
#include "jit/jit.h"
#include "kernel/ref/ref.h"
#include "pass/pass.h"
#include "shard/shard.h"
#include "shard/varying.h"
#include "tool/opt_batch.h"
#include "tool/opt_launches.h"
#include "tool/opt_loops.h"
#include "tool/opt_read.h"
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

/* As a client of a plugin for accelerators has it, but for passes: these are guard and fold, by --pass. */
static ts_status print_for_accelerator(const ts_graph *graph, ts_text *out) {
  const ts_stablehlo_options options = ts_stablehlo_for_accelerators();
  return ts_graph_print_stablehlo_with(graph, &options, out);
}

static ts_status print_graph(ts_graph **inout) { return print_as(*inout, ts_graph_print); }

static ts_status print_loops(ts_graph **inout) { return print_as(*inout, ts_opt_print_loops); }

static ts_status print_launches(ts_graph **inout) { return print_as(*inout, ts_opt_print_launches); }

static ts_status verify_graph(ts_graph **inout) { return ts_graph_verify(*inout); }

/* As a comment, so that the output still is a graph's text. */
static ts_status count_regions(ts_graph **inout) {
  const ts_graph *graph = *inout;
  size_t fusions = 0;
  for (size_t i = 0; i < graph->ops.count; i++) fusions += graph->ops.data[i].code == TS_OP_FUSION;
  printf("// %zu regions, %zu fusions\n", graph->regions.count, fusions);
  return TS_SUCCESS;
}

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
    {"count", "print as a comment how many regions and fusions the graph has", count_regions},
    {"loops", "print as comments the loop nest that the graph is: loops, reads, writes, scalar ops", print_loops},
    {"launches", "print as comments which kernels each op is lowered to", print_launches},
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
  ts_pass_options options = {.evaluate = evaluate, .verify = true};
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
  uint64_t size; /* of dims that are symbols; 0: not given */
  bool stablehlo, accelerator, help;
  ts_opt_run run;
} options;

static bool runs(const options *o) { return o->run.run || o->run.check || o->run.explain || o->run.counts || o->dump; }

static ts_status transform_copy(ts_graph **inout, const ts_graph *original, const options *o) {
  TS_TRY(run_steps(o->passes, inout));
  TS_TRY(ts_graph_verify(*inout));
  if (runs(o)) return ts_opt_run_graph(*inout, original, &o->run);
  if (o->accelerator) return print_as(*inout, print_for_accelerator);
  return print_as(*inout, o->stablehlo ? ts_graph_print_stablehlo : ts_graph_print);
}

static ts_status transform(const ts_graph *original, const options *o) {
  ts_graph *graph;
  TS_TRY(ts_graph_verify(original));
  TS_TRY(ts_graph_clone(original, &graph));
  ts_status status = transform_copy(&graph, original, o);
  ts_graph_destroy(graph);
  return status;
}

static ts_status process(const options *o) {
  ts_text text = {0};
  ts_graph *graph = NULL;
  ts_status status = read_file(o->path, &text);
  if (!status) status = ts_opt_read(text.data, text.length, o->size, &graph);
  if (!status) status = transform(graph, o);
  ts_graph_destroy(graph);
  ts_text_deinit(&text);
  return status;
}

static int usage(FILE *out, int code) {
  fputs(
      "usage: tessera-opt [OPTION...] [FILE]\n"
      "       tessera-opt --batch FILE\n"
      "Reads a graph's text, or a program of StableHLO as text or bytecode (standard input without FILE), runs passes\n"
      "on it, and prints it, or:\n"
      "  --run             compile it, run it and print the results\n"
      "  --ref             the same by the interpreter, without compiling\n"
      "  --partitions      the same by all partitions of a program with a mesh, by the interpreter\n"
      "  --check[=plain]   compile it, run it and compare with the interpreter's results of the graph before\n"
      "                    the passes, or with those of that graph compiled without fusion and simplification;\n"
      "                    with --ref or --partitions compare these\n"
      "  --ulps=N          how many units in the last place floats may differ: 64 without it; 0: equal bits\n"
      "  --modes           check other modes of compilation and kinds of runs, too\n"
      "  --stablehlo       print it as a module of StableHLO\n"
      "  --accelerator     the same as plugins for accelerators get it, after --pass=guard,fold\n"
      "  --explain         compile it and print steps, kernels, costs and memory plan\n"
      "  --counts          compile it and print how many steps, kernels and bytes there are\n"
      "  --dump=WHAT,...   compile it without caches and print what is named to standard error:\n"
      "                    graph, passes, kernels, llvm, asm, plan\n"
      "  --kernels         the same as --dump=kernels\n"
      "  --input=N,...     numbers of the next argument, repeated as needed; others are made up\n"
      "  --seed=N          of the made-up numbers\n"
      "  --special         with NaN, infinities and limits of integers among them\n"
      "  --size=N          of the dims of a program of StableHLO whose sizes are symbols\n"
      "  --batch FILE      run each line of FILE, which is \"OUTPUT OPTION... FILE\": what it prints becomes the file\n"
      "                    OUTPUT, and its exit code is printed\n"
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
  *out = list;
  return *list && ts_status_consume_ok(ts_dump_check("--dump", list));
}

static bool parse_number(const char *text, uint64_t *out) {
  char *end;
  errno = 0;
  *out = strtoull(text, &end, 10);
  return *text >= '0' && *text <= '9' && !*end && !errno;
}

static bool parse_ulps(const char *text, int64_t *out) {
  uint64_t number;
  if (!parse_number(text, &number) || number > INT32_MAX) return false;
  *out = (int64_t)number;
  return true;
}

/* Options that only set a flag. */
static bool parse_flag(const char *arg, options *o) {
  const struct {
    const char *name;
    bool *flag;
  } flags[] = {{"--help", &o->help},           {"--run", &o->run.run},
               {"--ref", &o->run.ref},         {"--partitions", &o->run.partitions},
               {"--explain", &o->run.explain}, {"--counts", &o->run.counts},
               {"--modes", &o->run.modes},     {"--special", &o->run.special},
               {"--stablehlo", &o->stablehlo}, {"--accelerator", &o->accelerator}};
  for (size_t i = 0; i < sizeof flags / sizeof *flags; i++)
    if (strcmp(arg, flags[i].name) == 0) return *flags[i].flag = true;
  return false;
}

static bool parse_check(const char *text, ts_opt_check *out) {
  *out = *text ? TS_OPT_PLAIN : TS_OPT_INTERPRETER;
  return !*text || strcmp(text, "=plain") == 0;
}

static bool set(const char **out, const char *text) {
  *out = text;
  return true;
}

/* Options with a word or a number. */
static bool parse_setting(const char *arg, options *o) {
  const char *text;
  if (strcmp(arg, "--kernels") == 0) return set(&o->dump, "kernels");
  if ((text = after(arg, "--check"))) return parse_check(text, &o->run.check);
  if ((text = after(arg, "--dump="))) return parse_dump(text, &o->dump);
  if ((text = after(arg, "--pass="))) return set(&o->passes, text);
  if ((text = after(arg, "--seed="))) return parse_number(text, &o->run.seed);
  if ((text = after(arg, "--ulps="))) return parse_ulps(text, &o->run.ulps);
  if ((text = after(arg, "--size="))) return parse_number(text, &o->size) && o->size > 0 && o->size <= INT32_MAX;
  return (text = after(arg, "--input=")) && ts_status_consume_ok(TS_VEC_PUSH(&o->run.inputs, text));
}

static bool parse_option(const char *arg, options *o) {
  if (arg[0] == '-' && arg[1]) return parse_flag(arg, o) || parse_setting(arg, o);
  if (o->path) return false;
  o->path = arg;
  return true;
}

static bool parse_options(int argc, char **argv, options *o) {
  for (int i = 0; i < argc; i++)
    if (!parse_option(argv[i], o)) return false;
  if (!o->path) o->path = "-";
  o->run.run |= (o->run.ref || o->run.partitions) && !o->run.check;
  return true;
}

static int run(const options *o) {
  if (o->dump) {
    setenv("TESSERA_DUMP", o->dump, 1);
    setenv("TESSERA_CACHE_DIR", "", 1);
  }
  ts_status status = ts_jit_check_environment();
  if (!status) status = process(o);
  if (!status) return 0;
  fflush(stdout);
  fprintf(stderr, "error: %s\n", ts_status_message(status));
  ts_status_free(status);
  return 1;
}

static int run_command(int argc, char **argv) {
  options o = {.passes = "", .run.ulps = 64};
  bool understood = parse_options(argc, argv, &o);
  int code = understood && !o.help ? run(&o) : usage(understood ? stdout : stderr, understood ? 0 : 2);
  TS_VEC_FREE(&o.run.inputs);
  return code;
}

int main(int argc, char **argv) {
  bool is_batch = argc == 3 && strcmp(argv[1], "--batch") == 0;
  int code = is_batch ? ts_opt_batch(argv[2], run_command) : run_command(argc - 1, argv + 1);
  ts_jit_stop(); /* no thread may be in LLVM while exit() destroys LLVM's objects */
  return code;
}
