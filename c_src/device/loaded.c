/* Executables of clients, and their runs. */
#include "device/device.h"

#include "base/alloc.h"

ts_status ts_loaded_create(ts_client *client, const ts_graph *graph, const ts_compile_options *options,
                           ts_loaded **out) {
  ts_loaded *loaded;
  *out = NULL;
  TS_TRY(TS_NEW(&loaded));
  atomic_init(&loaded->refs, 1);
  loaded->client = client;
  loaded->partitions = 1;
  ts_status status = client->platform->compile(client, graph, options, loaded);
  if (status || !loaded->own)
    ts_free(loaded);
  else
    *out = loaded;
  return status;
}

void ts_loaded_retain(ts_loaded *loaded) { atomic_fetch_add_explicit(&loaded->refs, 1, memory_order_relaxed); }

void ts_loaded_release(ts_loaded *loaded) {
  if (!loaded || atomic_fetch_sub_explicit(&loaded->refs, 1, memory_order_acq_rel) != 1) return;
  loaded->client->platform->release(loaded->own);
  ts_free(loaded);
}

void ts_loaded_get_stats(const ts_loaded *loaded, ts_executable_stats *out) {
  const ts_platform *platform = loaded->client->platform;
  *out = (ts_executable_stats){.cost_ns = loaded->cost_ns};
  if (platform->get_stats) platform->get_stats(loaded->own, out);
}

ts_status ts_loaded_explain(const ts_loaded *loaded, ts_text *out) {
  const ts_platform *platform = loaded->client->platform;
  if (platform->explain) return platform->explain(loaded->own, out);
  return ts_error(TS_UNIMPLEMENTED, "explain: platform %s of client %s cannot say how it runs a program",
                  platform->name, loaded->client->name);
}

/* ---- runs */

ts_device *ts_loaded_device(const ts_loaded *loaded, ts_device *bound, ts_run_args args) {
  if (bound) return bound;
  for (size_t i = 0; i < args.count; i++) {
    ts_device *device = args.buffers[i]->device;
    if (device && device->client->group == loaded->client->group) return device;
  }
  return loaded->client->devices[0];
}

/* Sets the device of a run, and what its client says of runs. */
static inline void set_device(const ts_loaded *loaded, ts_run_args args, ts_run_options *o) {
  if (!o->device) o->device = ts_loaded_device(loaded, NULL, args);
  const ts_client *client = o->device->client;
  o->pool = atomic_load_explicit(&client->pool, memory_order_acquire);
  int most = atomic_load_explicit(&client->threads, memory_order_relaxed);
  if (most && (!o->threads || o->threads > most)) o->threads = most;
}

static bool is_of_group(const ts_loaded *loaded, const ts_device *device) {
  return device->client->group == loaded->client->group;
}

static ts_status wrong_group(const ts_loaded *loaded, const ts_device *device) {
  return ts_error(TS_INVALID_ARGUMENT, "a program compiled for client %s cannot run on %s", loaded->client->name,
                  TS_DEVICE_STR(device));
}

/* In the path of every eager op: the options are not copied, and the platform's function is a tail call. */
ts_status ts_loaded_run(const ts_loaded *loaded, ts_run_args args, ts_run_options *options, ts_buffer **out_results) {
  set_device(loaded, args, options);
  if (!is_of_group(loaded, options->device)) return wrong_group(loaded, options->device);
  return loaded->client->platform->run(loaded, args, options, out_results);
}

/* ---- resumable runs */

struct ts_device_run {
  const ts_loaded *loaded;
  const ts_platform *platform;
  void *own;
  /* of a platform without resumable runs */
  ts_run_args args;
  ts_run_options options;
  ts_buffer **results; /* once it is done */
};

static ts_status begin(ts_device_run *run) {
  set_device(run->loaded, run->args, &run->options);
  if (!is_of_group(run->loaded, run->options.device)) return wrong_group(run->loaded, run->options.device);
  if (run->platform->begin) return run->platform->begin(run->loaded, run->args, &run->options, &run->own);
  return TS_SUCCESS;
}

ts_status ts_device_run_create(const ts_loaded *loaded, ts_run_args args, const ts_run_options *options,
                               ts_device_run **out) {
  ts_device_run *run;
  *out = NULL;
  TS_TRY(TS_NEW(&run));
  *run = (ts_device_run){.loaded = loaded, .platform = loaded->client->platform, .args = args, .options = *options};
  ts_status status = begin(run);
  if (status)
    ts_free(run);
  else
    *out = run;
  return status;
}

/* Runs the whole program. Its results are kept until the end; donated arguments are released then, since the caller has
 * them until the end. */
static ts_status run_whole(ts_device_run *run) {
  ts_run_options options = run->options;
  ts_buffer **results;
  options.donated = (ts_bits){0};
  if (run->results) return TS_SUCCESS;
  TS_TRY(TS_NEW_ARRAY(run->loaded->result_count, &results));
  ts_status status = run->platform->run(run->loaded, run->args, &options, results);
  if (status)
    ts_free(results);
  else
    run->results = results;
  return status;
}

ts_status ts_device_run_advance(ts_device_run *run, ts_run_state *out_state) {
  if (run->own) return run->platform->advance(run->own, out_state);
  *out_state = TS_RUN_DONE;
  return run_whole(run);
}

void ts_device_run_get_call(const ts_device_run *run, ts_run_call *out) { run->platform->get_call(run->own, out); }

const void *ts_device_run_operand(const ts_device_run *run, uint32_t i) { return run->platform->operand(run->own, i); }

static void release_all(ts_buffer **buffers, size_t count) {
  for (size_t i = 0; i < count; i++) ts_buffer_release(buffers[i]);
}

static ts_status fetch_all(ts_buffer *const *buffers, size_t count, ts_buffer **out) {
  for (size_t i = 0; i < count; i++) {
    ts_status status = ts_device_fetch(buffers[i], &out[i]);
    if (!status) continue;
    release_all(out, i);
    return status;
  }
  return TS_SUCCESS;
}

ts_status ts_device_run_answer(ts_device_run *run, ts_buffer *const *results, size_t count) {
  ts_buffer **host;
  if (!run->own) return ts_error(TS_FAILED_PRECONDITION, "the run waits for no callback");
  TS_TRY(TS_NEW_ARRAY(count, &host));
  ts_status status = fetch_all(results, count, host);
  if (!status) {
    status = run->platform->answer(run->own, host, count);
    release_all(host, count);
  }
  ts_free(host);
  return status;
}

static void hand_out(ts_device_run *run, ts_buffer **out_results) {
  for (size_t i = 0; i < run->loaded->result_count; i++) out_results[i] = run->results[i];
  for (size_t i = 0; i < run->args.count; i++)
    if (ts_bits_has(run->options.donated, i)) ts_buffer_release(run->args.buffers[i]);
}

ts_status ts_device_run_end(ts_device_run *run, ts_buffer **out_results) {
  if (!run) return TS_SUCCESS;
  ts_status status = TS_SUCCESS;
  if (run->own)
    status = run->platform->end(run->own, out_results);
  else if (out_results && run->results)
    hand_out(run, out_results);
  else if (run->results)
    release_all(run->results, run->loaded->result_count);
  ts_free(run->results);
  ts_free(run);
  return status;
}
