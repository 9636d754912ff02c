/* Runs: they are done when their function returns, on the caller's thread and the process's workers. */
#include "plugin/plugin.h"

#include <string.h>

/* One replica's run. */
typedef struct run {
  plugin_code *code;
  pj_device *device;
  pj_buffer *const *args;
  uint64_t *donated;
  ts_buffer **data; /* a reference to each argument; its buffer's own reference if the argument is donated */
  ts_buffer **results;
  pj_buffer **made;
} run;

static bool is_kept(const pj_execute_options *o, size_t i) {
  for (size_t k = 0; o && k < o->kept_count; k++)
    if (o->kept[k] == (int64_t)i) return true;
  return false;
}

static ts_status check_argument(const run *r, size_t i) {
  const pj_buffer *b = r->args[i];
  const ts_type *type = ts_executable_param_types(r->code->exe)[i];
  if (!b) return ts_error(TS_INVALID_ARGUMENT, "argument %zu: there is no buffer", i);
  if (b->device != r->device)
    return ts_error(TS_INVALID_ARGUMENT, "argument %zu is on %s, and the run on %s", i, b->device->description.text,
                    r->device->description.text);
  if (b->type == r->code->param_types[i] && ts_shape_equal(b->shape, &type->shape)) return TS_SUCCESS;
  return ts_error(TS_INVALID_ARGUMENT, "argument %zu is of PJRT's type %d and %d dims, and the program takes %s", i,
                  b->type, b->shape->rank, TS_SHAPE_STR(type->dtype, &type->shape));
}

static bool is_donated(const run *r, size_t i) {
  return ts_bits_has((ts_bits){r->donated, 0, r->code->param_count}, i);
}

/* The error of an argument whose buffer has no data: an argument that was taken before may have the same buffer. */
static ts_status explain(const run *r, size_t i, ts_status status) {
  for (size_t k = 0; status && k < r->code->param_count; k++)
    if (r->data[k] && is_donated(r, k) && r->args[k] == r->args[i]) {
      ts_status_free(status);
      return ts_error(TS_INVALID_ARGUMENT, "argument %zu is donated, and argument %zu is the same buffer", k, i);
    }
  return status;
}

/* Takes donated arguments first. If one of them has the buffer of another argument, then the other argument finds a
 * buffer without data. */
static ts_status take_arguments(run *r, const pj_execute_options *options) {
  for (size_t i = 0; i < r->code->param_count; i++) TS_TRY(check_argument(r, i));
  for (size_t i = 0; i < r->code->param_count; i++) {
    if (!r->code->donated[i] || is_kept(options, i)) continue;
    ts_bits_set(r->donated, i);
    TS_TRY(explain(r, i, plugin_buffer_take(r->args[i], &r->data[i])));
  }
  for (size_t i = 0; i < r->code->param_count; i++)
    if (!is_donated(r, i)) TS_TRY(explain(r, i, plugin_buffer_get(r->args[i], &r->data[i])));
  return TS_SUCCESS;
}

/* Arguments that the run has not taken over. */
static void return_arguments(run *r, bool succeeded) {
  for (size_t i = 0; i < r->code->param_count; i++) {
    if (!r->data[i]) continue;
    if (!is_donated(r, i))
      ts_buffer_release(r->data[i]);
    else if (!succeeded)
      plugin_buffer_give_back(r->args[i], r->data[i]);
  }
}

/* Whether the result has the elements of an argument that the caller keeps. Most results are unique: this is quick. */
static bool is_argument(const run *r, const ts_buffer *result) {
  if (ts_buffer_is_unique(result)) return false;
  for (size_t i = 0; i < r->code->param_count; i++)
    if (!is_donated(r, i) && ts_buffer_root(r->data[i]) == ts_buffer_root(result)) return true;
  return false;
}

/* A result that has an argument's elements gets a copy of them: the caller may have given the argument bytes that
 * change. */
static ts_status own_results(run *r) {
  for (size_t i = 0; i < r->code->result_count; i++) {
    ts_buffer *from = r->results[i], *copy;
    if (!is_argument(r, from)) continue;
    TS_TRY(ts_buffer_create(plugin_client_pool(r->code->client), from->dtype, &from->shape, &copy));
    if (from->bytes) memcpy(copy->data, from->data, (size_t)from->bytes);
    r->results[i] = copy;
    ts_buffer_release(from);
  }
  return TS_SUCCESS;
}

static ts_status make_results(run *r) {
  ts_status status = own_results(r);
  for (size_t i = 0; i < r->code->result_count && !status; i++) {
    status = plugin_buffer_new(r->device, r->code->types[i], r->results[i], &r->made[i]);
    if (!status) r->results[i] = NULL;
  }
  for (size_t i = 0; i < r->code->result_count; i++) ts_buffer_release(r->results[i]);
  return status;
}

static ts_status run_arguments(run *r, const pj_execute_options *options) {
  const pj_handle *client = r->code->client;
  ts_status status = take_arguments(r, options);
  if (!status) {
    const ts_run_options o = {.threads = client->threads,
                              .donated = {r->donated, 0, r->code->param_count},
                              .pool = plugin_client_pool(client),
                              .checked = true};
    status = ts_executable_run(r->code->exe, r->data, r->code->param_count, &o, r->results);
  }
  const bool succeeded = !status;
  if (succeeded) status = make_results(r);
  return_arguments(r, succeeded);
  return status;
}

static void drop_buffers(pj_buffer **buffers, size_t count) {
  for (size_t i = 0; i < count; i++) {
    plugin_buffer_destroy(&(pj_args){.object = buffers[i]});
    buffers[i] = NULL;
  }
}

static ts_status run_replica(run *r, const pj_execute_options *options) {
  TS_TRY(TS_NEW_ARRAY(r->code->param_count + 1, &r->data));
  ts_status status = TS_NEW_ARRAY(ts_bits_words(r->code->param_count) + 1, &r->donated);
  if (!status) status = TS_NEW_ARRAY(r->code->result_count + 1, &r->results);
  if (!status) status = run_arguments(r, options);
  if (status) drop_buffers(r->made, r->code->result_count);
  ts_free(r->data);
  ts_free(r->donated);
  ts_free(r->results);
  return status;
}

static ts_status check(const pj_args *args) {
  const pj_loaded *l = args->execute.loaded;
  const plugin_code *c = l->code;
  size_t devices = args->execute.device_count;
  if (atomic_load(&l->is_deleted)) return ts_error(TS_FAILED_PRECONDITION, "the executable was deleted");
  if (args->execute.device ? devices != 1 : devices != (size_t)c->replicas)
    return ts_error(TS_INVALID_ARGUMENT, "arguments for %zu devices: the executable has %d", devices, c->replicas);
  if (args->execute.arg_count != c->param_count)
    return ts_error(TS_INVALID_ARGUMENT, "%zu arguments: the program takes %zu", args->execute.arg_count,
                    c->param_count);
  return TS_SUCCESS;
}

/* An event for each device. On failure there is no event. */
static ts_status make_events(const pj_args *args) {
  size_t made = 0, count = args->execute.complete ? args->execute.device_count : 0;
  ts_status status = TS_SUCCESS;
  while (made < count && !status) {
    status = plugin_event_new(false, &args->execute.complete[made]);
    if (!status) made++;
  }
  while (status && made > 0) plugin_event_destroy(&(pj_args){.object = args->execute.complete[--made]});
  return status;
}

ts_status plugin_execute(pj_args *args) {
  const pj_loaded *l = args->execute.loaded;
  size_t devices = args->execute.device_count, done = 0;
  TS_TRY(check(args));
  ts_status status = TS_SUCCESS;
  while (done < devices && !status) {
    pj_buffer **results = args->execute.results[done];
    for (size_t i = 0; i < l->code->result_count; i++) results[i] = NULL;
    run r = {.code = l->code,
             .device = args->execute.device ? args->execute.device : l->devices[done],
             .args = args->execute.arg_count ? args->execute.args[done] : NULL,
             .made = results};
    status = run_replica(&r, args->execute.options);
    if (!status) done++;
  }
  if (!status) status = make_events(args);
  for (size_t i = 0; status && i < done; i++) drop_buffers(args->execute.results[i], l->code->result_count);
  return status;
}
