#include "tool/opt_run.h"

#include "ir/syntax.h"
#include "kernel/ref/ref.h"
#include "shard/shard.h"
#include "tool/compare.h"
#include "tool/judge.h"
#include "tool/opt_check.h"

#include <inttypes.h>
#include <stdio.h>

/* ---- results ---- */

static const void *element(const ts_buffer *buffer, int64_t i) {
  return (const char *)buffer->data + (size_t)i * ts_dtype_size(buffer->dtype);
}

static ts_status print(size_t index, const ts_buffer *buffer) {
  ts_text text = {0};
  char *string;
  ts_text_format(&text, "result %zu: %s =", index, TS_SHAPE_STR(buffer->dtype, &buffer->shape));
  for (int64_t i = 0; i < ts_shape_elements(&buffer->shape); i++) {
    ts_text_append(&text, " ");
    ts_scalar_print(&text, buffer->dtype, ts_scalar_load(buffer->dtype, element(buffer, i)));
  }
  ts_status status = ts_text_finish(&text, &string);
  if (status) return status;
  puts(string);
  ts_free(string);
  return TS_SUCCESS;
}

/* ---- running ---- */

static ts_status explain(const ts_executable *exe) {
  ts_text text = {0};
  ts_status status = ts_executable_explain(exe, &text);
  if (!status) fwrite(text.data, 1, text.length, stdout);
  ts_text_deinit(&text);
  return status;
}

static void print_counts(const ts_executable *exe) {
  ts_executable_stats s;
  ts_executable_get_stats(exe, &s);
  printf("steps %" PRId64 "\nkernels %" PRId64 "\nepilogues %" PRId64 "\n", s.steps, s.kernels, s.epilogues);
  printf("bytes of temporaries %" PRId64 "\nbytes of results %" PRId64 "\n", s.temp_bytes, s.result_bytes);
}

static ts_status run_compiled(const ts_graph *graph, const ts_opt_run *options, const ts_opt_tensors *args,
                              ts_opt_tensors *out) {
  ts_executable *exe;
  TS_TRY(ts_executable_create(graph, NULL, &exe));
  ts_status status = options->explain ? explain(exe) : TS_SUCCESS;
  if (options->counts) print_counts(exe);
  if (!status && args) status = ts_executable_run(exe, args->data, args->count, NULL, out->data);
  ts_executable_release(exe);
  return status;
}

/* ---- partitions ---- */

static ts_status cut_args(const ts_graph *graph, const ts_opt_tensors *args, ts_opt_tensors *out) {
  TS_TRY(ts_opt_tensors_create(args->count * (size_t)ts_mesh_partitions(&graph->mesh), out));
  for (size_t i = 0; i < out->count; i++)
    TS_TRY(ts_shard_cut(&graph->mesh, ts_graph_sharding(graph, TS_PARAMS, i % args->count), args->data[i % args->count],
                        (int32_t)(i / args->count), ts_pool_default(), &out->data[i]));
  return TS_SUCCESS;
}

static ts_status join_results(const ts_graph *graph, const ts_opt_tensors *parts, ts_opt_tensors *out) {
  int32_t partitions = ts_mesh_partitions(&graph->mesh);
  ts_status status = TS_SUCCESS;
  ts_buffer **all;
  TS_TRY(TS_NEW_ARRAY((size_t)partitions, &all));
  for (size_t i = 0; !status && i < out->count; i++) {
    for (int32_t p = 0; p < partitions; p++) all[p] = parts->data[(size_t)p * out->count + i];
    status =
        ts_shard_join(&graph->mesh, ts_graph_sharding(graph, TS_RESULTS, i), all, ts_pool_default(), &out->data[i]);
  }
  ts_free(all);
  return status;
}

static ts_status run_parts(const ts_graph *graph, const ts_opt_tensors *args, ts_opt_tensors *out) {
  ts_opt_tensors parts = {0}, results = {0};
  ts_status status = cut_args(graph, args, &parts);
  if (!status) status = ts_opt_tensors_create(out->count * (size_t)ts_mesh_partitions(&graph->mesh), &results);
  if (!status) status = ts_ref_run_partitions(graph, parts.data, args->count, ts_pool_default(), results.data);
  if (!status) status = join_results(graph, &results, out);
  ts_opt_tensors_deinit(&parts);
  ts_opt_tensors_deinit(&results);
  return status;
}

static ts_status run_partitioned(const ts_graph *graph, const ts_opt_tensors *args, ts_opt_tensors *out) {
  ts_graph *partitioned;
  TS_TRY(ts_shard_partition(graph, NULL, NULL, &partitioned));
  ts_status status = ts_graph_verify(partitioned);
  if (!status) status = run_parts(partitioned, args, out);
  ts_graph_destroy(partitioned);
  return status;
}

/* ---- checks ---- */

typedef struct job {
  const ts_graph *graph, *original;
  const ts_opt_run *options;
  ts_opt_tensors args, results, expected;
} job;

static ts_status make_job(job *j) {
  size_t count = ts_graph_region(j->graph, TS_ROOT)->results.count;
  TS_TRY(ts_opt_args(j->original, j->options, &j->args));
  TS_TRY(ts_opt_tensors_create(count, &j->results));
  return ts_opt_tensors_create(ts_graph_region(j->original, TS_ROOT)->results.count, &j->expected);
}

static ts_status interpret(const ts_graph *graph, const ts_opt_tensors *args, ts_opt_tensors *out) {
  return ts_ref_run(graph, args->data, args->count, ts_pool_default(), out->data);
}

/* The interpreter's results. If the interpreter does not define the bits of an op, the results are a run's, after it
 * was judged. */
static ts_status interpret_and_judge(const ts_graph *graph, const ts_opt_tensors *args, ts_opt_tensors *out) {
  return ts_judged_run(graph, args->data, args->count, out->data);
}

static ts_status run(job *j) {
  if (j->options->partitions) return run_partitioned(j->graph, &j->args, &j->results);
  if (j->options->ref) return interpret(j->graph, &j->args, &j->results);
  return run_compiled(j->graph, j->options, &j->args, &j->results);
}

static ts_status check(job *j) {
  bool plain = j->options->check == TS_OPT_PLAIN;
  int64_t ulps = plain && j->options->ulps == 0 ? TS_COMPARE_BITS : j->options->ulps;
  const ts_opt_expected expected = {&j->args, &j->expected, ulps};
  const bool compiled = !j->options->partitions && !j->options->ref;
  TS_TRY((plain ? ts_opt_run_plain : compiled ? interpret_and_judge : interpret)(j->original, &j->args, &j->expected));
  TS_TRY(ts_opt_compare(&j->results, &j->expected, ulps));
  if (j->options->modes) TS_TRY(ts_opt_check_modes(j->graph, &expected));
  puts(plain ? "the plain program agrees" : "the interpreter agrees");
  return TS_SUCCESS;
}

static ts_status do_job(job *j) {
  TS_TRY(make_job(j));
  TS_TRY(run(j));
  for (size_t i = 0; j->options->run && i < j->results.count; i++) TS_TRY(print(i, j->results.data[i]));
  return j->options->check ? check(j) : TS_SUCCESS;
}

ts_status ts_opt_run_graph(const ts_graph *graph, const ts_graph *original, const ts_opt_run *options) {
  if (!options->run && !options->check) return run_compiled(graph, options, NULL, NULL);
  job j = {.graph = graph, .original = original, .options = options};
  ts_status status = do_job(&j);
  ts_opt_tensors_deinit(&j.args);
  ts_opt_tensors_deinit(&j.results);
  ts_opt_tensors_deinit(&j.expected);
  return status;
}
