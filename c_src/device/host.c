/* The platform `host`: exec/ behind the table. */
#include "device/device.h"

static ts_status host_compile(ts_client *client, const ts_graph *graph, const ts_compile_options *options,
                              ts_loaded *out) {
  ts_executable *exe;
  (void)client;
  TS_TRY(ts_executable_create(graph, options, &exe));
  out->own = exe;
  if (!exe) return TS_SUCCESS;
  out->param_count = ts_executable_param_count(exe);
  out->result_count = ts_executable_result_count(exe);
  out->param_types = ts_executable_param_types(exe);
  out->result_types = ts_executable_result_types(exe);
  out->is_short = ts_executable_is_short(exe);
  out->calls_back = ts_executable_calls_back(exe);
  out->cost_ns = ts_executable_cost_ns(exe);
  return TS_SUCCESS;
}

static void host_release(void *own) { ts_executable_release(own); }

static void host_get_stats(const void *own, ts_executable_stats *out) { ts_executable_get_stats(own, out); }

static ts_status host_explain(const void *own, ts_text *out) { return ts_executable_explain(own, out); }

static ts_status check_bytes(ts_run_args args) {
  void *bytes;
  for (size_t i = 0; i < args.count; i++)
    if (args.buffers[i]->elsewhere)
      return ts_error_context(ts_device_bytes(args.buffers[i], &bytes), "argument %zu", i + 1);
  return TS_SUCCESS;
}

static ts_status host_run(const ts_loaded *loaded, ts_run_args args, const ts_run_options *options,
                          ts_buffer **out_results) {
  TS_TRY(check_bytes(args));
  return ts_executable_run(loaded->own, args.buffers, args.count, options, out_results);
}

static ts_status host_begin(const ts_loaded *loaded, ts_run_args args, const ts_run_options *options, void **out_run) {
  ts_execution *execution;
  *out_run = NULL;
  TS_TRY(check_bytes(args));
  TS_TRY(ts_execution_create(loaded->own, args.buffers, args.count, options, &execution));
  *out_run = execution;
  return TS_SUCCESS;
}

static ts_status host_advance(void *run, ts_run_state *out_state) { return ts_execution_advance(run, out_state); }

static void host_get_call(const void *run, ts_run_call *out) { ts_execution_get_call(run, out); }

static const void *host_operand(const void *run, uint32_t i) { return ts_execution_operand(run, i); }

static ts_status host_answer(void *run, ts_buffer *const *results, size_t count) {
  return ts_execution_answer(run, results, count);
}

static ts_status host_end(void *run, ts_buffer **out_results) { return ts_execution_end(run, out_results); }

const ts_platform ts_platform_host = {.name = "host",
                                      .compile = host_compile,
                                      .release = host_release,
                                      .get_stats = host_get_stats,
                                      .explain = host_explain,
                                      .run = host_run,
                                      .begin = host_begin,
                                      .advance = host_advance,
                                      .get_call = host_get_call,
                                      .operand = host_operand,
                                      .answer = host_answer,
                                      .end = host_end};
