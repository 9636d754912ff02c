#include "pjrt/split.h"

#include <stdio.h>

ts_status pj_execute(const pj_code *code, int32_t device, pj_buffer *const *args, pj_buffer **results,
                     pj_event **out_complete) {
  pj_client *c = code->client;
  pj_execute_options options = {.size = sizeof options};
  *out_complete = NULL;
  pj_args a = PJ_ARGS(.execute = {.loaded = code->loaded,
                                  .options = &options,
                                  .args = &args,
                                  .device_count = 1,
                                  .arg_count = code->param_count,
                                  .results = &results,
                                  .complete = out_complete,
                                  .device = c->devices[device]});
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
  if (!status) status = pj_compile_now(c, graph, out);
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

ts_status pj_reshape_buffer(const pj_memory *from, const ts_shape *to, pj_buffer **out) {
  pj_client *c = from->client;
  const pj_code *code;
  pj_event *complete = NULL;
  pthread_mutex_lock(&c->lock);
  ts_status status = find_reshape(c, from, to, &code);
  pthread_mutex_unlock(&c->lock);
  if (!status) status = pj_execute(code, from->device, &from->buffer, out, &complete);
  if (!status) pj_destroy(c->plugin, PJ_EVENT_DESTROY, complete); /* the buffer has an event of its own */
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
 * A run has references to its program and its arguments: after a deadline its caller has none of them any more. */

typedef struct run {
  pj_wait wait;
  pj_deadline deadline;
  const ts_run_request *request; /* valid while the caller waits */
  pj_code *program;              /* a reference */
  const pj_code *code;           /* the program for the present client */
  pj_client *client;
  int32_t device;
  pj_memory **args;                        /* references */
  pj_buffer **buffers, **views, **results; /* views: arguments in another shape; the run destroys them */
  pj_memory **made;
} run;

static void free_run(run *r) {
  for (size_t i = 0; i < r->program->param_count; i++) {
    pj_destroy(r->client->plugin, PJ_BUFFER_DESTROY, r->views[i]);
    pj_memory_release(r->args[i]);
  }
  for (size_t i = 0; i < r->program->result_count; i++) pj_memory_release(r->made[i]);
  pj_release_program(r->program);
  ts_free(r);
}

static void take_results(run *r) {
  const ts_run_request *q = r->request;
  for (size_t i = 0; i < r->program->result_count; i++) {
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

static void ran(pj_wait *wait, ts_status status) { end_run((run *)wait, status); }

/* Nothing can fail after the plugin has begun the run, so what holds the results is there before. */
static ts_status prepare(run *r) {
  const pj_code *code = r->code;
  for (size_t i = 0; i < code->param_count; i++) {
    const pj_memory *m = r->args[i];
    if (m->client != r->client)
      return ts_error(TS_UNAVAILABLE, "argument %zu was in a process of the plugin that has ended", i + 1);
    r->buffers[i] = m->buffer;
    if (ts_shape_equal(m->shape, &code->types[i]->shape)) continue;
    TS_TRY(pj_reshape_buffer(m, &code->types[i]->shape, &r->views[i]));
    r->buffers[i] = r->views[i];
  }
  for (size_t i = 0; i < code->result_count; i++) {
    const ts_type *type = code->types[code->param_count + i];
    TS_TRY(pj_memory_new(r->client, r->device, type->dtype, &type->shape, &r->made[i]));
  }
  return TS_SUCCESS;
}

static ts_status submit(run *r) {
  TS_TRY(pj_deadline_check(&r->deadline));
  if (!r->deadline.ms) TS_TRY(pj_door_code(r->request->client, r->program, &r->code));
  r->client = r->code->client;
  TS_TRY(prepare(r));
  TS_TRY(pj_execute(r->code, r->device, r->buffers, r->results, &r->wait.event));
  for (size_t i = 0; i < r->code->result_count; i++) r->made[i]->buffer = r->results[i];
  return TS_SUCCESS;
}

static void run_now(pj_job *job) {
  run *r = (run *)job;
  ts_status status = submit(r);
  if (status)
    end_run(r, status);
  else
    pj_await(r->client->plugin, r->wait.event, &r->wait);
}

static ts_status check(const ts_run_request *q) {
  const pj_code *code = q->program;
  const pj_client *c = code->client;
  if (q->device_count != 1)
    return ts_error(TS_UNIMPLEMENTED, "a plugin runs programs of one partition, got %d", q->device_count);
  if (q->devices[0] < 0 || q->devices[0] >= c->device_count)
    return ts_error(TS_INVALID_ARGUMENT, "the plugin has %d devices, got device %d", c->device_count, q->devices[0]);
  if (q->arg_count != code->param_count)
    return ts_error(TS_INVALID_ARGUMENT, "the program takes %zu arguments, got %zu", code->param_count, q->arg_count);
  return TS_SUCCESS;
}

/* The run and its arrays are one block. */
static ts_status new_run(const ts_run_request *q, ts_done done, run **out) {
  pj_code *code = (pj_code *)(uintptr_t)q->program;
  size_t params = code->param_count, results = code->result_count;
  run *r;
  TS_TRY(check(q));
  TS_TRY(ts_alloc(sizeof *r + (3 * params + 2 * results) * sizeof(void *), (void **)&r));
  *r = (run){.wait = {.job.body = run_now, .what = "the run", .then = ran},
             .deadline.done = done,
             .request = q,
             .program = code,
             .code = code,
             .client = code->client,
             .device = q->devices[0]};
  r->args = (pj_memory **)(r + 1);
  r->buffers = (pj_buffer **)(r->args + params);
  r->views = r->buffers + params;
  r->results = r->views + params;
  r->made = (pj_memory **)(r->results + results);
  pj_code_retain(code);
  for (size_t i = 0; i < params; i++) {
    r->args[i] = q->args[i];
    pj_memory_retain(r->args[i]);
  }
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
  status = pj_deadline_begin(&r->deadline, r->client->answer_ms, &r->client->late, "the run", done);
  if (status)
    end_run(r, status);
  else
    pj_work(&r->wait.job);
}
