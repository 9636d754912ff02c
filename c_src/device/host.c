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
  out->partitions = ts_executable_partitions(exe);
  out->coordinates = ts_executable_has_coordinates(exe);
  out->cost_ns = ts_executable_cost_ns(exe);
  return TS_SUCCESS;
}

static void host_release(void *own) { ts_executable_release(own); }

static void host_get_stats(const void *own, ts_executable_stats *out) { ts_executable_get_stats(own, out); }

static ts_status host_explain(const void *own, ts_text *out) { return ts_executable_explain(own, out); }

/* The first argument whose bytes the host cannot read; `args.count` when there is none. */
static inline size_t first_elsewhere(ts_run_args args) {
  size_t i = 0;
  while (i < args.count && !args.buffers[i]->elsewhere) i++;
  return i;
}

/* Cold, so that the runs below save no registers for it. */
__attribute__((cold)) static ts_status refuse(ts_run_args args, size_t index) {
  void *bytes;
  return ts_error_context(ts_device_bytes(args.buffers[index], &bytes), "argument %zu", index + 1);
}

static ts_status host_run(const ts_loaded *loaded, ts_run_args args, const ts_run_options *options,
                          ts_buffer **out_results) {
  size_t wrong = first_elsewhere(args);
  if (wrong < args.count) return refuse(args, wrong);
  return ts_executable_run(loaded->own, args.buffers, args.count, options, out_results);
}

static ts_status host_begin(const ts_loaded *loaded, ts_run_args args, const ts_run_options *options, void **out_run) {
  ts_execution *execution;
  *out_run = NULL;
  size_t wrong = first_elsewhere(args);
  if (wrong < args.count) return refuse(args, wrong);
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

static ts_status host_begin_group(const ts_loaded *loaded, ts_run_args args, const ts_group_options *options,
                                  void **out_group) {
  ts_group *group;
  *out_group = NULL;
  size_t wrong = first_elsewhere(args);
  if (wrong < args.count) return refuse(args, wrong);
  TS_TRY(ts_group_create(loaded->own, args.buffers, args.count / (size_t)ts_device_group_size(loaded, options->carrier),
                         options, &group));
  *out_group = group;
  return TS_SUCCESS;
}

static ts_status host_advance_group(void *group, ts_run_state *out_state) { return ts_group_advance(group, out_state); }

static ts_status host_end_group(void *group, ts_buffer **out_results) { return ts_group_end(group, out_results); }

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
                                      .end = host_end,
                                      .begin_group = host_begin_group,
                                      .advance_group = host_advance_group,
                                      .end_group = host_end_group};
