/* Executables of clients, and their runs. */
#include "device/remote.h"

#include "base/alloc.h"
#include "base/system.h"
#include "exec/profile.h"

static const ts_direct by_waiting;

/* ---- compiling and loading */

typedef struct making {
  ts_client *client;
  ts_program program;
  ts_loaded *loaded, **out;
  ts_done done;
} making;

static void fill(ts_loaded *loaded, ts_client *client, const ts_program *p) {
  const ts_direct *direct = client->platform->direct;
  *loaded = (ts_loaded){.is_short = direct && p->is_short,
                        .calls_back = p->calls_back,
                        .may_stop = p->may_stop,
                        .coordinates = p->coordinates,
                        .waits = !direct,
                        .partitions = p->partitions,
                        .client = client,
                        .direct = direct ? direct : &by_waiting,
                        .own = p->program,
                        .param_count = p->param_count,
                        .result_count = p->result_count,
                        .param_types = p->param_types,
                        .result_types = p->result_types,
                        .cost_ns = p->cost_ns,
                        .pace = p->pace};
  atomic_init(&loaded->refs, 1);
}

/* The use of the client becomes the program's. */
static void made(ts_status status, void *arg) {
  making *m = arg;
  ts_done done = m->done;
  if (!status && m->program.program) {
    fill(m->loaded, m->client, &m->program);
    *m->out = m->loaded;
  } else {
    ts_free(m->loaded);
    ts_client_unuse(m->client);
  }
  ts_free(m);
  ts_done_call(done, status);
}

static ts_status begin_making(ts_client *client, ts_loaded **out, ts_done done, making **out_making) {
  making *m;
  *out = NULL;
  TS_TRY(TS_NEW(&m));
  *m = (making){.client = client, .out = out, .done = done};
  ts_status status = TS_NEW(&m->loaded);
  if (!status) status = ts_client_use(client);
  if (status) {
    ts_free(m->loaded);
    ts_free(m);
    return status;
  }
  *out_making = m;
  return TS_SUCCESS;
}

void ts_loaded_create_start(ts_client *client, const ts_graph *graph, const ts_program_options *options,
                            ts_loaded **out, ts_done done) {
  static const ts_program_options defaults = {0};
  making *m;
  ts_status status = begin_making(client, out, done, &m);
  if (status)
    ts_done_call(done, status);
  else
    client->platform->compile(client->own, graph, options ? options : &defaults, &m->program, (ts_done){made, m});
}

void ts_loaded_load_start(ts_client *client, const ts_saved_program *saved, ts_loaded **out, ts_done done) {
  making *m;
  ts_status status = TS_SUCCESS;
  *out = NULL;
  if (!(client->platform->flags & TS_PLATFORM_SAVES))
    status =
        ts_error(TS_UNIMPLEMENTED, "platform %s of client %s loads no programs", client->platform->name, client->name);
  if (!status) status = begin_making(client, out, done, &m);
  if (status)
    ts_done_call(done, status);
  else
    client->platform->load(client->own, saved, &m->program, (ts_done){made, m});
}

void ts_loaded_save_start(ts_loaded *loaded, ts_text *out, ts_done done) {
  const ts_client *client = loaded->client;
  if (client->platform->flags & TS_PLATFORM_SAVES)
    client->platform->save(loaded->own, out, done);
  else
    ts_done_call(done, ts_error(TS_UNIMPLEMENTED, "platform %s of client %s saves no programs", client->platform->name,
                                client->name));
}

ts_status ts_loaded_create(ts_client *client, const ts_graph *graph, const ts_program_options *options,
                           ts_loaded **out) {
  ts_wait wait;
  ts_loaded_create_start(client, graph, options, out, ts_wait_begin(&wait));
  return ts_wait_end(&wait);
}

ts_status ts_loaded_load(ts_client *client, const ts_saved_program *saved, ts_loaded **out) {
  ts_wait wait;
  ts_loaded_load_start(client, saved, out, ts_wait_begin(&wait));
  return ts_wait_end(&wait);
}

ts_status ts_loaded_save(ts_loaded *loaded, ts_text *out) {
  ts_wait wait;
  ts_loaded_save_start(loaded, out, ts_wait_begin(&wait));
  return ts_wait_end(&wait);
}

void ts_loaded_get_stats(const ts_loaded *loaded, ts_program_stats *out) {
  const ts_platform *platform = loaded->client->platform;
  *out = (ts_program_stats){.cost_ns = loaded->cost_ns};
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
  return loaded->direct->run(loaded, args, options, out_results);
}

/* ---- measures of runs that wait: of the whole run, since the platform tells no steps */

ts_loaded_measure ts_loaded_measure_begin(const ts_loaded *loaded, ts_profile *profile) {
  if (!profile) return (ts_loaded_measure){0};
  ts_profile_retain(profile);
  return (ts_loaded_measure){profile, loaded, ts_system_ns()};
}

void ts_loaded_measure_end(const ts_loaded_measure *m, bool done) {
  if (!m->profile) return;
  uint64_t number = ts_profile_number(&((ts_loaded *)(uintptr_t)m->loaded)->number);
  if (done) ts_profile_add_run(m->profile, number, m->loaded->client->name, m->began_ns);
  ts_profile_release(m->profile);
}

/* ---- resumable runs */

struct ts_device_run {
  const ts_loaded *loaded;
  ts_run_args args;
  ts_run_options options;
  void *own;           /* of a direct run */
  ts_pending *pending; /* of a waiting run */
  ts_loaded_measure measure;
};

static ts_status begin(ts_device_run *run) {
  ts_loaded *loaded = (ts_loaded *)(uintptr_t)run->loaded;
  ts_run_options *o = &run->options;
  set_device(loaded, run->args, o);
  if (!is_of_group(loaded, o->device)) return wrong_group(loaded, o->device);
  if (!loaded->waits) return loaded->direct->begin(loaded, run->args, o, &run->own);
  ts_pending_options options = {.devices = &o->device,
                                .partitions = 1,
                                .control = o->control,
                                .threads = o->threads,
                                .donated = o->donated,
                                .ready = o->ready,
                                .context = o->context};
  run->measure = ts_loaded_measure_begin(loaded, o->profile);
  ts_status status = ts_pending_create(loaded, run->args, &options, &run->pending);
  if (status) ts_loaded_measure_end(&run->measure, false);
  return status;
}

ts_status ts_device_run_create(const ts_loaded *loaded, ts_run_args args, const ts_run_options *options,
                               ts_device_run **out) {
  ts_device_run *run;
  *out = NULL;
  TS_TRY(TS_NEW(&run));
  *run = (ts_device_run){.loaded = loaded, .args = args, .options = *options};
  ts_status status = begin(run);
  if (status)
    ts_free(run);
  else
    *out = run;
  return status;
}

ts_status ts_device_run_advance(ts_device_run *run, ts_run_state *out_state) {
  return run->pending ? ts_pending_advance(run->pending, out_state) : run->loaded->direct->advance(run->own, out_state);
}

void ts_device_run_get_call(const ts_device_run *run, ts_run_call *out) {
  if (!run->pending) {
    run->loaded->direct->get_call(run->own, out);
    return;
  }
  const ts_program_call *call = ts_pending_call(run->pending);
  *out = (ts_run_call){.index = call->index,
                       .operand_count = call->operand_count,
                       .result_count = call->result_count,
                       .operand_types = call->operand_types,
                       .result_types = call->result_types};
}

const void *ts_device_run_operand(const ts_device_run *run, uint32_t i) {
  return run->pending ? ts_pending_call(run->pending)->operands[i] : run->loaded->direct->operand(run->own, i);
}

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

static ts_status answer_direct(ts_device_run *run, ts_buffer *const *results, size_t count) {
  ts_buffer **host;
  TS_TRY(TS_NEW_ARRAY(count, &host));
  ts_status status = fetch_all(results, count, host);
  if (!status) {
    status = run->loaded->direct->answer(run->own, host, count);
    release_all(host, count);
  }
  ts_free(host);
  return status;
}

ts_status ts_device_run_answer(ts_device_run *run, ts_buffer *const *results, size_t count) {
  return run->pending ? ts_pending_answer(run->pending, results, count) : answer_direct(run, results, count);
}

ts_status ts_device_run_end(ts_device_run *run, ts_buffer **out_results) {
  if (!run) return TS_SUCCESS;
  ts_status status =
      run->pending ? ts_pending_end(run->pending, out_results) : run->loaded->direct->end(run->own, out_results);
  ts_loaded_measure_end(&run->measure, !status && out_results);
  ts_free(run);
  return status;
}

/* ---- a run of a program that waits, for callers that wait */

static ts_status run_and_wait(const ts_loaded *loaded, ts_run_args args, const ts_run_options *options,
                              ts_buffer **out_results) {
  ts_device_run *run;
  ts_run_state state;
  if (loaded->calls_back)
    return ts_error(TS_FAILED_PRECONDITION, "the program calls back: only a resumable run can have answers");
  TS_TRY(ts_device_run_create(loaded, args, options, &run));
  ts_status status = ts_device_run_advance(run, &state); /* without `ready` it waits */
  ts_status ended = ts_device_run_end(run, status ? NULL : out_results);
  if (!status) return ended;
  ts_status_free(ended);
  return status;
}

static const ts_direct by_waiting = {.run = run_and_wait};
