/* Runs: they are done when their function returns, on the caller's thread and the process's workers. The processes of a
 * program, its replicas and partitions, run together, as a group. */
#include "plugin/plugin.h"

#include "group/group.h"

#include <string.h>

/* Lists have the arguments or results of the first process, then those of the second, and so on. */
typedef struct run {
  plugin_code *code;
  size_t count;              /* of processes */
  pj_device *const *devices; /* of each process, as the next two */
  pj_buffer *const *const *args;
  pj_buffer **const *made;
  uint64_t *donated;
  ts_buffer **data; /* a reference to each argument; its buffer's own reference if the argument is donated */
  ts_buffer **results;
} run;

static size_t arg_count(const run *r) { return r->count * r->code->param_count; }
static size_t result_count(const run *r) { return r->count * r->code->result_count; }

static bool is_kept(const pj_execute_options *o, size_t i) {
  for (size_t k = 0; o && k < o->kept_count; k++)
    if (o->kept[k] == (int64_t)i) return true;
  return false;
}

static ts_status check_argument(const run *r, size_t process, size_t i) {
  const pj_buffer *b = r->args[process][i];
  const pj_device *device = r->devices[process];
  const ts_type *type = ts_executable_param_types(r->code->exe)[i];
  if (!b) return ts_error(TS_INVALID_ARGUMENT, "argument %zu: there is no buffer", i);
  if (b->device != device)
    return ts_error(TS_INVALID_ARGUMENT, "argument %zu is on %s, and the run on %s", i, b->device->description.text,
                    device->description.text);
  if (b->type == r->code->param_types[i] && ts_shape_equal(b->shape, &type->shape)) return TS_SUCCESS;
  return ts_error(TS_INVALID_ARGUMENT, "argument %zu is of PJRT's type %d and %d dims, and the program takes %s", i,
                  b->type, b->shape->rank, TS_SHAPE_STR(type->dtype, &type->shape));
}

static bool is_donated(const run *r, size_t process, size_t i) {
  return ts_bits_has((ts_bits){r->donated, process * r->code->param_count, r->code->param_count}, i);
}

/* The error of an argument whose buffer has no data: an argument that was taken before may have the same buffer. */
static ts_status explain(const run *r, size_t process, size_t i, ts_status status) {
  const size_t count = r->code->param_count;
  for (size_t k = 0; status && k < count; k++)
    if (r->data[process * count + k] && is_donated(r, process, k) && r->args[process][k] == r->args[process][i]) {
      ts_status_free(status);
      return ts_error(TS_INVALID_ARGUMENT, "argument %zu is donated, and argument %zu is the same buffer", k, i);
    }
  return status;
}

/* Takes donated arguments first. If one of them has the buffer of another argument, then the other argument finds a
 * buffer without data. */
static ts_status take_arguments(run *r, size_t process, const pj_execute_options *options) {
  const size_t count = r->code->param_count;
  ts_buffer **data = r->data + process * count;
  for (size_t i = 0; i < count; i++) TS_TRY(check_argument(r, process, i));
  for (size_t i = 0; i < count; i++) {
    if (!r->code->donated[i] || is_kept(options, i)) continue;
    ts_bits_set(r->donated, process * count + i);
    TS_TRY(explain(r, process, i, plugin_buffer_take(r->args[process][i], &data[i])));
  }
  for (size_t i = 0; i < count; i++)
    if (!is_donated(r, process, i)) TS_TRY(explain(r, process, i, plugin_buffer_get(r->args[process][i], &data[i])));
  return TS_SUCCESS;
}

/* Arguments that the run has not taken over. */
static void return_arguments(run *r, size_t process, bool succeeded) {
  const size_t count = r->code->param_count;
  for (size_t i = 0; i < count; i++) {
    ts_buffer *data = r->data[process * count + i];
    if (!data) continue;
    if (!is_donated(r, process, i) || (!succeeded && data->spent))
      ts_buffer_release(data);
    else if (!succeeded)
      plugin_buffer_give_back(r->args[process][i], data);
  }
}

/* Whether the result has the elements of an argument that the caller keeps. Most results are unique: this is quick. */
static bool is_argument(const run *r, const ts_buffer *result) {
  if (ts_buffer_is_unique(result)) return false;
  for (size_t k = 0; k < arg_count(r); k++)
    if (!ts_bits_has((ts_bits){r->donated, 0, arg_count(r)}, k) && ts_buffer_root(r->data[k]) == ts_buffer_root(result))
      return true;
  return false;
}

/* A result that has an argument's elements gets a copy of them: the caller may have given the argument bytes that
 * change. */
static ts_status own_results(run *r) {
  for (size_t k = 0; k < result_count(r); k++) {
    ts_buffer *from = r->results[k], *copy;
    if (!is_argument(r, from)) continue;
    TS_TRY(ts_buffer_create(plugin_client_pool(r->code->client), from->dtype, &from->shape, &copy));
    if (from->bytes) memcpy(copy->data, from->data, (size_t)from->bytes);
    r->results[k] = copy;
    ts_buffer_release(from);
  }
  return TS_SUCCESS;
}

static ts_status make_results(run *r) {
  const size_t count = r->code->result_count;
  ts_status status = own_results(r);
  for (size_t k = 0; k < result_count(r) && !status; k++) {
    const size_t process = k / count, i = k % count;
    status = plugin_buffer_new(r->devices[process], r->code->types[i], r->results[k], &r->made[process][i]);
    if (!status) r->results[k] = NULL;
  }
  for (size_t k = 0; k < result_count(r); k++) ts_buffer_release(r->results[k]);
  return status;
}

/* Runs until all processes are done: without `ready` a group does not wait. */
static ts_status run_group(const run *r) {
  const pj_handle *client = r->code->client;
  const ts_group_options o = {
      .threads = client->threads, .donated = {r->donated, 0, arg_count(r)}, .pool = plugin_client_pool(client)};
  ts_run_state state = TS_RUN_PAUSED;
  ts_group *group;
  TS_TRY(ts_group_create(r->code->exe, r->data, r->code->param_count, &o, &group));
  ts_status status = TS_SUCCESS;
  while (!status && state != TS_RUN_DONE) status = ts_group_advance(group, &state);
  ts_status ended = ts_group_end(group, status ? NULL : r->results);
  if (!status) return ended;
  ts_status_free(ended);
  return status;
}

static ts_status run_alone(const run *r) {
  const pj_handle *client = r->code->client;
  const ts_run_options o = {.threads = client->threads,
                            .donated = {r->donated, 0, r->code->param_count},
                            .pool = plugin_client_pool(client),
                            .checked = true};
  return ts_executable_run(r->code->exe, r->data, r->code->param_count, &o, r->results);
}

static ts_status run_arguments(run *r, const pj_execute_options *options) {
  ts_status status = TS_SUCCESS;
  for (size_t p = 0; p < r->count && !status; p++) status = take_arguments(r, p, options);
  if (!status) status = r->count > 1 ? run_group(r) : run_alone(r);
  const bool succeeded = !status;
  if (succeeded) status = make_results(r);
  for (size_t p = 0; p < r->count; p++) return_arguments(r, p, succeeded);
  return status;
}

static void drop_buffers(pj_buffer **buffers, size_t count) {
  for (size_t i = 0; i < count; i++) {
    plugin_buffer_destroy(&(pj_args){.object = buffers[i]});
    buffers[i] = NULL;
  }
}

static void drop_results(const run *r) {
  for (size_t p = 0; r->code->result_count && p < r->count; p++) drop_buffers(r->made[p], r->code->result_count);
}

static ts_status run_processes(run *r, const pj_execute_options *options) {
  for (size_t p = 0; p < r->count; p++)
    for (size_t i = 0; i < r->code->result_count; i++) r->made[p][i] = NULL;
  TS_TRY(TS_NEW_ARRAY(arg_count(r) + 1, &r->data));
  ts_status status = TS_NEW_ARRAY(ts_bits_words(arg_count(r)) + 1, &r->donated);
  if (!status) status = TS_NEW_ARRAY(result_count(r) + 1, &r->results);
  if (!status) status = run_arguments(r, options);
  if (status) drop_results(r);
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
  if (devices != (size_t)c->process_count)
    return ts_error(TS_INVALID_ARGUMENT, "arguments for %zu devices: the executable has %d", devices, c->process_count);
  if (args->execute.device && devices != 1)
    return ts_error(TS_INVALID_ARGUMENT, "a device is named for an executable of %zu devices", devices);
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
  TS_TRY(check(args));
  run r = {.code = l->code,
           .count = args->execute.device_count,
           .devices = args->execute.device ? &args->execute.device : l->devices,
           .args = args->execute.args,
           .made = args->execute.results};
  TS_TRY(run_processes(&r, args->execute.options));
  ts_status status = make_events(args);
  if (status) drop_results(&r);
  return status;
}
