#include "tool/opt_check.h"

#include "tool/compare.h"

#include <string.h>

ts_status ts_opt_compare(const ts_opt_tensors *got, const ts_opt_tensors *expected, int64_t ulps) {
  char message[TS_COMPARE_TEXT];
  for (size_t i = 0; i < got->count; i++)
    if (!ts_compare_numbers(got->data[i], expected->data[i], ulps, message))
      return ts_error(TS_INTERNAL, "result %zu, got and expected: %s", i, message);
  return TS_SUCCESS;
}

/* ---- modes ---- */

#define ALL \
  { .words = (const uint64_t[]){UINT64_MAX}, .count = 64 }

static const ts_run_control control;

static const struct {
  const char *name;
  ts_run_options options;
} ways[] = {{"all threads", {0}},
            {"with a control", {.control = &control}},
            {"checked arguments", {.checked = true}},
            {"one thread", {.threads = 1}},
            {"donated arguments", {.donated = ALL}},
            {"one thread, donated arguments", {.threads = 1, .donated = ALL}}};

static const struct {
  const char *name;
  ts_compile_options options;
} modes[] = {{"compiled", {0}},
             {"without fusion", {.no_fusion = true}},
             {"without simplification", {.no_simplify = true}},
             {"plain", {.no_fusion = true, .no_simplify = true}},
             {"general kernels", {.general_kernels = true}}};

static ts_status copy(const ts_buffer *from, ts_buffer **out) {
  TS_TRY(ts_buffer_create(ts_pool_default(), from->dtype, &from->shape, out));
  if (from->bytes > 0) memcpy((*out)->data, from->data, (size_t)from->bytes);
  return TS_SUCCESS;
}

/* A run may write to the copies. It takes the donated copies. */
static ts_status run_copies(const ts_executable *exe, const ts_run_options *way, ts_opt_tensors *copies,
                            ts_opt_tensors *out) {
  TS_TRY(ts_executable_run(exe, copies->data, copies->count, way, out->data));
  for (size_t i = 0; i < copies->count; i++)
    if (ts_bits_has(way->donated, i)) copies->data[i] = NULL;
  return TS_SUCCESS;
}

static ts_status run_way(const ts_executable *exe, const ts_run_options *way, const ts_opt_tensors *args,
                         ts_opt_tensors *out) {
  ts_opt_tensors copies = {0};
  ts_status status = ts_opt_tensors_create(args->count, &copies);
  for (size_t i = 0; !status && i < args->count; i++) status = copy(args->data[i], &copies.data[i]);
  if (!status) status = run_copies(exe, way, &copies, out);
  ts_opt_tensors_deinit(&copies);
  return status;
}

static ts_status check_way(const ts_executable *exe, size_t way, const ts_opt_expected *expected, ts_opt_tensors *got) {
  ts_status status = run_way(exe, &ways[way].options, expected->args, got);
  if (!status) status = ts_opt_compare(got, expected->results, expected->ulps);
  ts_opt_tensors_clear(got);
  return ts_error_context(status, "%s", ways[way].name);
}

/* Each twice: a run leaves layouts and memory to the next. */
static ts_status check_ways(const ts_executable *exe, const ts_opt_expected *expected) {
  ts_opt_tensors got = {0};
  enum { WAYS = sizeof ways / sizeof *ways };
  ts_status status = ts_opt_tensors_create(expected->results->count, &got);
  for (size_t i = 0; !status && i < 2 * WAYS; i++) status = check_way(exe, i % WAYS, expected, &got);
  ts_opt_tensors_deinit(&got);
  return status;
}

ts_status ts_opt_check_modes(const ts_graph *graph, const ts_opt_expected *expected) {
  for (size_t m = 0; m < sizeof modes / sizeof *modes; m++) {
    ts_executable *exe;
    TS_TRY(ts_executable_create(graph, &modes[m].options, &exe));
    ts_status status = check_ways(exe, expected);
    ts_executable_release(exe);
    TS_TRY(ts_error_context(status, "%s", modes[m].name));
  }
  return TS_SUCCESS;
}

ts_status ts_opt_run_plain(const ts_graph *graph, const ts_opt_tensors *args, ts_opt_tensors *out) {
  const ts_compile_options plain = {.no_fusion = true, .no_simplify = true};
  ts_executable *exe;
  TS_TRY(ts_executable_create(graph, &plain, &exe));
  ts_status status = ts_executable_run(exe, args->data, args->count, &(ts_run_options){.threads = 1}, out->data);
  ts_executable_release(exe);
  return status;
}
