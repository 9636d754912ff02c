#include "pjrt/split.h"

#include <stdio.h>

ts_status pj_execute(const pj_code *code, const pj_launch *launch) {
  pj_client *c = code->client;
  pj_execute_options options = {.size = sizeof options};
  for (int32_t i = 0; i < code->partitions; i++) launch->complete[i] = NULL;
  pj_args a = PJ_ARGS(.execute = {.loaded = code->loaded,
                                  .options = &options,
                                  .args = launch->args,
                                  .device_count = (size_t)code->partitions,
                                  .arg_count = code->param_count,
                                  .results = launch->results,
                                  .complete = launch->complete,
                                  .device = code->partitions == 1 ? c->devices[launch->device] : NULL});
  return pj_call(c->plugin, PJ_EXECUTE, &a);
}

/* ---- reshapes */

struct pj_reshape {
  pj_reshape *next;
  pj_code *code;
};

static ts_status compile_reshape(pj_client *c, const pj_memory *from, const ts_shape *to, pj_code **out) {
  ts_graph *graph;
  ts_value_id value;
  ts_attrs attrs;
  TS_TRY(ts_graph_create(&graph));
  ts_status status = ts_graph_add_param(graph, TS_ROOT, from->dtype, from->shape, &value);
  memset(&attrs, 0, sizeof attrs);
  ts_shape_copy(&attrs.shape, to);
  if (!status && !ts_shape_equal(from->shape, to))
    status = ts_graph_add_op(graph, TS_ROOT, TS_OP_RESHAPE, (ts_values){&value, 1}, &attrs, &value);
  if (!status) status = ts_graph_set_results(graph, TS_ROOT, &value, 1);
  if (!status) status = pj_compile_now(c, graph, TS_PRECISION_OF_CLIENT, out);
  ts_graph_destroy(graph);
  return status;
}

static bool does(const pj_code *code, const pj_memory *from, const ts_shape *to) {
  return code->types[0]->dtype == from->dtype && ts_shape_equal(&code->types[0]->shape, from->shape) &&
         ts_shape_equal(&code->types[1]->shape, to);
}

/* The lock is held. */
static ts_status find_reshape(pj_client *c, const pj_memory *from, const ts_shape *to, const pj_code **out) {
  pj_reshape *r = c->reshapes;
  while (r && !does(r->code, from, to)) r = r->next;
  if (!r) {
    TS_TRY(TS_NEW(&r));
    ts_status status = compile_reshape(c, from, to, &r->code);
    if (status) {
      ts_free(r);
      return status;
    }
    r->next = c->reshapes;
    c->reshapes = r;
  }
  *out = r->code;
  return TS_SUCCESS;
}

/* The deadline also holds for an operation that waits for the lock while another one compiles. */
static ts_status get_reshape(const pj_memory *from, const ts_shape *to, pj_deadline *deadline, const pj_code **out) {
  pj_client *c = from->client;
  const pj_limit limit = pj_client_compile_limit(c, "the compilation of a reshape");
  pj_deadline whole;
  TS_TRY(pj_deadline_begin_part(deadline, &limit, &whole));
  pthread_mutex_lock(&c->lock);
  ts_status status = find_reshape(c, from, to, out);
  pthread_mutex_unlock(&c->lock);
  pj_deadline_end_part(deadline, &whole);
  return status;
}

ts_status pj_reshape_buffer(const pj_memory *from, const ts_shape *to, pj_deadline *deadline, pj_buffer **out) {
  const pj_code *code;
  pj_event *complete = NULL;
  ts_status status = get_reshape(from, to, deadline, &code);
  pj_buffer *const *args = &from->buffer;
  if (!status) status = pj_execute(code, &(pj_launch){from->device, &args, &out, &complete});
  if (!status) pj_destroy(from->client->plugin, PJ_EVENT_DESTROY, complete); /* the buffer has an event of its own */
  return status;
}

void pj_reshapes_destroy(pj_client *client) {
  while (client->reshapes) {
    pj_reshape *r = client->reshapes;
    client->reshapes = r->next;
    pj_code_destroy(r->code);
    ts_free(r);
  }
}

/* ---- runs
 * A run has references to its program and its arguments: after a deadline its caller has none of them any more. Lists
 * have the entries of the first partition, then of the second, and so on. */

typedef struct run {
  pj_wait wait;
  pj_deadline deadline;
  const ts_run_request *request; /* valid while the caller waits */
  pj_code *program;              /* a reference */
  pj_code *code;                 /* the program for the present client; a reference to another one */
  pj_client *client;
  int32_t device;         /* of the first partition; of others the number is theirs */
  size_t params, results; /* of a partition */
  size_t partitions;
  pj_memory **args, **made;                 /* references */
  pj_buffer **buffers, **views, **returned; /* views: arguments in another shape; the run destroys them */
  pj_buffer ***arg_lists, ***result_lists;
  pj_event **events;
  size_t awaited; /* events that have ended */
  ts_status failed;
} run;

static void free_run(run *r) {
  for (size_t i = 0; i < r->partitions * r->params; i++) {
    pj_destroy(r->client->plugin, PJ_BUFFER_DESTROY, r->views[i]);
    pj_memory_release(r->args[i]);
  }
  for (size_t i = 0; i < r->partitions * r->results; i++) pj_memory_release(r->made[i]);
  if (r->code != r->program) pj_release_program(r->code);
  pj_release_program(r->program);
  ts_free(r);
}

static void take_results(run *r) {
  const ts_run_request *q = r->request;
  for (size_t i = 0; i < r->partitions * r->results; i++) {
    q->results[i] = r->made[i];
    r->made[i] = NULL;
  }
  for (size_t i = 0; i < q->arg_count; i++)
    if (ts_bits_has(q->donated, i)) pj_memory_release(q->args[i]);
}

static void end_run(run *r, ts_status status) {
  ts_done done = r->deadline.done;
  bool awaited = pj_deadline_end(&r->deadline);
  if (awaited && !status) take_results(r);
  free_run(r);
  if (awaited)
    ts_done_call(done, status);
  else
    ts_status_free(status);
}

static int32_t device_of(const run *r, size_t partition) { return r->partitions == 1 ? r->device : (int32_t)partition; }

static ts_status prepare_argument(run *r, size_t i) {
  const pj_memory *m = r->args[i];
  const ts_shape *shape = &r->code->types[i % r->params]->shape;
  if (m->client != r->client)
    return ts_error(TS_UNAVAILABLE, "argument %zu was in a process of the plugin that has ended", i % r->params + 1);
  r->buffers[i] = m->buffer;
  if (ts_shape_equal(m->shape, shape)) return TS_SUCCESS;
  TS_TRY(pj_reshape_buffer(m, shape, &r->deadline, &r->views[i]));
  r->buffers[i] = r->views[i];
  return TS_SUCCESS;
}

/* Nothing can fail after the plugin has begun the run, so what holds the results is there before. */
static ts_status prepare(run *r) {
  for (size_t i = 0; i < r->partitions * r->params; i++) TS_TRY(prepare_argument(r, i));
  for (size_t i = 0; i < r->partitions * r->results; i++) {
    const ts_type *type = r->code->types[r->params + i % r->results];
    TS_TRY(pj_memory_new(r->client, device_of(r, i / r->results), type->dtype, &type->shape, &r->made[i]));
  }
  for (size_t i = 0; i < r->partitions; i++) {
    r->arg_lists[i] = r->buffers + i * r->params;
    r->result_lists[i] = r->returned + i * r->results;
  }
  return TS_SUCCESS;
}

/* A program that was compiled again has coordinates of its own. */
static void change_coordinates(run *r) {
  if (r->code == r->program || !r->code->coordinates) return;
  for (size_t i = 0; i < r->partitions; i++) {
    pj_memory **arg = &r->args[(i + 1) * r->params - 1];
    pj_memory_release(*arg);
    *arg = r->code->coordinates[i];
    pj_memory_retain(*arg);
  }
}

static ts_status submit(run *r) {
  TS_TRY(pj_deadline_check(&r->deadline));
  if (!pj_has_deadline(&r->deadline)) TS_TRY(pj_door_code(r->request->client, r->program, &r->code));
  r->client = r->code->client;
  change_coordinates(r);
  TS_TRY(prepare(r));
  const pj_launch launch = {r->device, (pj_buffer *const *const *)r->arg_lists, r->result_lists, r->events};
  TS_TRY(pj_execute(r->code, &launch));
  for (size_t i = 0; i < r->partitions * r->results; i++) r->made[i]->buffer = r->returned[i];
  return TS_SUCCESS;
}

/* The event of a partition has ended. All are awaited, since each of them uses the run's memory. */
static void ran(pj_wait *wait, ts_status status) {
  run *r = (run *)wait;
  if (r->failed)
    ts_status_free(status);
  else
    r->failed = status;
  if (++r->awaited < r->partitions)
    pj_await(r->client->plugin, r->events[r->awaited], &r->wait);
  else
    end_run(r, r->failed);
}

static void run_now(pj_job *job) {
  run *r = (run *)job;
  ts_status status = submit(r);
  if (status)
    end_run(r, status);
  else
    pj_await(r->client->plugin, r->events[0], &r->wait);
}

static size_t given_params(const pj_code *code) { return code->param_count - (code->coordinates ? 1 : 0); }

static ts_status check_devices(const ts_run_request *q) {
  const pj_code *code = q->program;
  const pj_client *c = code->client;
  if (q->device_count != code->partitions)
    return ts_error(TS_INVALID_ARGUMENT, "the program has %d partitions, got %d devices", code->partitions,
                    q->device_count);
  for (int32_t i = 0; i < q->device_count; i++) {
    if (q->devices[i] < 0 || q->devices[i] >= c->device_count)
      return ts_error(TS_INVALID_ARGUMENT, "the plugin has %d devices, got device %d", c->device_count, q->devices[i]);
    if (q->device_count > 1 && q->devices[i] != i)
      return ts_error(TS_INVALID_ARGUMENT, "the plugin runs partition %d on device %d, got device %d", i, i,
                      q->devices[i]);
  }
  return TS_SUCCESS;
}

static ts_status check(const ts_run_request *q) {
  const pj_code *code = q->program;
  size_t wanted = given_params(code) * (size_t)code->partitions;
  TS_TRY(check_devices(q));
  if (q->arg_count == wanted) return TS_SUCCESS;
  return ts_error(TS_INVALID_ARGUMENT, "the program takes %zu arguments, got %zu", wanted, q->arg_count);
}

static void place_lists(run *r) {
  size_t args = r->partitions * r->params, results = r->partitions * r->results;
  r->args = (pj_memory **)(r + 1);
  r->made = r->args + args;
  r->buffers = (pj_buffer **)(r->made + results);
  r->views = r->buffers + args;
  r->returned = r->views + args;
  r->arg_lists = (pj_buffer ***)(r->returned + results);
  r->result_lists = r->arg_lists + r->partitions;
  r->events = (pj_event **)(r->result_lists + r->partitions);
}

static void retain_arguments(run *r) {
  const ts_run_request *q = r->request;
  size_t given = given_params(r->program);
  for (size_t i = 0; i < r->partitions * r->params; i++) {
    size_t partition = i / r->params, place = i % r->params;
    r->args[i] = place < given ? q->args[partition * given + place] : r->program->coordinates[partition];
    pj_memory_retain(r->args[i]);
  }
}

/* The run and its lists are one block. */
static ts_status new_run(const ts_run_request *q, ts_done done, run **out) {
  pj_code *code = (pj_code *)(uintptr_t)q->program;
  size_t params = code->param_count, results = code->result_count, partitions = (size_t)code->partitions;
  run *r;
  TS_TRY(check(q));
  TS_TRY(ts_alloc(sizeof *r + partitions * (3 * params + 2 * results + 3) * sizeof(void *), (void **)&r));
  *r = (run){.wait = {.job.body = run_now, .what = "the run", .then = ran},
             .deadline.done = done,
             .request = q,
             .program = code,
             .code = code,
             .client = code->client,
             .device = q->devices[0],
             .params = params,
             .results = results,
             .partitions = partitions};
  place_lists(r);
  pj_code_retain(code);
  retain_arguments(r);
  *out = r;
  return TS_SUCCESS;
}

void pj_run(const ts_run_request *request, ts_done done) {
  run *r;
  if (((const pj_code *)request->program)->split) {
    pj_split_run(request, done);
    return;
  }
  ts_status status = new_run(request, done, &r);
  if (status) {
    ts_done_call(done, status);
    return;
  }
  status = pj_client_begin(r->client, &r->deadline, "the run", done);
  if (status)
    end_run(r, status);
  else
    pj_work(&r->wait.job);
}
