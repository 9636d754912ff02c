/* The platform `host`: exec/ behind the table, and the short path to it. */
#include "device/host.h"

#include "base/alloc.h"
#include "device/device.h"

#include <string.h>

/* ---- clients, for code that uses the table itself; device/ opens clients of the host without it */

static ts_status enumerate(ts_device_description *out, int32_t room, int32_t *out_count) {
  *out_count = 1;
  if (room > 0) *out = (ts_device_description){.kind = "CPU"};
  return TS_SUCCESS;
}

static ts_status open_client(const ts_open_options *options, ts_opened *out) {
  ts_host_client *c;
  TS_TRY(TS_NEW(&c));
  ts_status status = options->memory_limit >= 0 ? ts_pool_create(options->memory_limit, &c->pool) : TS_SUCCESS;
  if (status)
    ts_free(c);
  else
    *out = (ts_opened){c, options->device_count ? options->device_count : 1};
  return status;
}

static void host_open(const ts_open_options *options, ts_opened *out, ts_done done) {
  ts_done_call(done, open_client(options, out));
}

static void host_close(void *client) {
  ts_pool_destroy(((ts_host_client *)client)->pool);
  ts_free(client);
}

static void host_get_memory(void *client, ts_memory_stats *out) {
  ts_pool_stats s;
  ts_pool_get_stats(ts_host_pool(client), &s);
  *out = (ts_memory_stats){
      .live = s.live, .peak = s.peak, .pooled = s.pooled, .limit = s.limit, .allocations = s.allocations};
}

/* ---- programs */

static ts_status compile(const ts_graph *graph, const ts_program_options *options, ts_program *out) {
  ts_executable *exe;
  ts_compile_options o = {.cancel = options->cancel,
                          .no_fusion = options->no_fusion,
                          .no_simplify = options->no_simplify,
                          .nonblocking = options->nonblocking};
  TS_TRY(ts_executable_create(graph, &o, &exe));
  *out = (ts_program){.program = exe};
  if (!exe) return TS_SUCCESS;
  out->param_count = ts_executable_param_count(exe);
  out->result_count = ts_executable_result_count(exe);
  out->param_types = ts_executable_param_types(exe);
  out->result_types = ts_executable_result_types(exe);
  out->is_short = ts_executable_is_short(exe);
  out->pace = ts_executable_pace(exe);
  out->may_stop = ts_executable_may_stop(exe);
  out->calls_back = ts_executable_calls_back(exe);
  out->partitions = ts_executable_partitions(exe);
  out->coordinates = ts_executable_has_coordinates(exe);
  out->cost_ns = ts_executable_cost_ns(exe);
  return TS_SUCCESS;
}

static void host_compile(void *client, const ts_graph *graph, const ts_program_options *options, ts_program *out,
                         ts_done done) {
  (void)client;
  ts_done_call(done, compile(graph, options, out));
}

static void host_release_program(void *program) { ts_executable_release(program); }

static void host_get_stats(const void *program, ts_program_stats *out) {
  ts_executable_stats s;
  ts_executable_get_stats(program, &s);
  *out = (ts_program_stats){.steps = s.steps,
                            .kernels = s.kernels,
                            .kernels_compiled = s.kernels_compiled,
                            .temp_bytes = s.temp_bytes,
                            .result_bytes = s.result_bytes,
                            .live_peak_bytes = s.live_peak_bytes,
                            .planned_peak_bytes = s.planned_peak_bytes,
                            .cost_ns = s.cost_ns,
                            .pass_ns = s.pass_ns,
                            .lower_ns = s.lower_ns,
                            .kernel_ns = s.kernel_ns};
}

static ts_status host_explain(const void *program, ts_text *out) { return ts_executable_explain(program, out); }

/* ---- memory: a buffer */

static ts_status place(const ts_placement *p, const void *data, void **out) {
  ts_buffer *buffer;
  *out = NULL;
  TS_TRY(ts_buffer_create(ts_host_pool(p->client), p->dtype, p->shape, &buffer));
  memcpy(buffer->data, data, (size_t)buffer->bytes);
  *out = buffer;
  return TS_SUCCESS;
}

static void host_from_host(const ts_placement *placement, const void *data, void **out_memory, ts_done done) {
  ts_done_call(done, place(placement, data, out_memory));
}

static void host_to_host(void *memory, int64_t bytes, void *out, ts_done done) {
  memcpy(out, ((ts_buffer *)memory)->data, (size_t)bytes);
  ts_done_call(done, TS_SUCCESS);
}

static void host_copy(void *memory, const ts_placement *placement, void **out_memory, ts_done done) {
  ts_done_call(done, place(placement, ((ts_buffer *)memory)->data, out_memory));
}

static void host_release_memory(void *memory) { ts_buffer_release(memory); }

/* ---- the short path */

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

static const ts_direct direct = {.run = host_run,
                                 .begin = host_begin,
                                 .advance = host_advance,
                                 .get_call = host_get_call,
                                 .operand = host_operand,
                                 .answer = host_answer,
                                 .end = host_end,
                                 .begin_group = host_begin_group,
                                 .advance_group = host_advance_group,
                                 .end_group = host_end_group};

ts_executable *ts_host_program(const struct ts_loaded *loaded) {
  return loaded->client->platform == &ts_platform_host ? loaded->own : NULL;
}

const ts_platform ts_platform_host = {.name = "host",
                                      .flags = TS_PLATFORM_HOST_MEMORY | TS_PLATFORM_CALLS_BACK | TS_PLATFORM_GROUPS |
                                               TS_PLATFORM_CANCELS,
                                      .direct = &direct,
                                      .enumerate = enumerate,
                                      .open = host_open,
                                      .close = host_close,
                                      .get_memory = host_get_memory,
                                      .compile = host_compile,
                                      .release_program = host_release_program,
                                      .get_stats = host_get_stats,
                                      .explain = host_explain,
                                      .from_host = host_from_host,
                                      .to_host = host_to_host,
                                      .copy = host_copy,
                                      .release_memory = host_release_memory,
                                      .run = ts_host_run};
