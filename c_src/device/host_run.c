/* A run of the host by the table. One thread at a time advances it: first the thread that began it, and after a
 * callback that is not answered at once, the answering thread. */
#include "device/host.h"

#include "base/alloc.h"
#include "group/group.h"

/* A callback of a run. CALLED: handed out. ANSWERED: before the thread that handed it out came back. PARKED: after. */
typedef enum phase { CALLED, ANSWERED, PARKED } phase;

typedef struct host_run {
  ts_program_call call; /* first, so that an answer finds the run */
  const ts_run_request *request;
  ts_done done;
  ts_buffer **args;        /* the request's arguments, or views of them */
  uint64_t *donated;       /* of `args`, without views */
  ts_execution *execution; /* one of both */
  ts_group *group;
  const void **operands;
  ts_status refused; /* an answer that is an error */
  _Atomic int phase;
} host_run;

static bool is_view(const host_run *r, size_t i) { return r->args[i] && r->args[i] != r->request->args[i]; }

/* An argument with the shape of its parameter. */
static ts_status view_arg(host_run *r, size_t i, const ts_type *type) {
  ts_buffer *arg = r->request->args[i];
  if (arg->dtype == type->dtype && ts_shape_equal(&arg->shape, &type->shape)) {
    r->args[i] = arg;
    if (ts_bits_has(r->request->donated, i)) ts_bits_set(r->donated, i);
    return TS_SUCCESS;
  }
  return ts_buffer_alias(arg, type->dtype, &type->shape, &r->args[i]);
}

static ts_status view_args(host_run *r) {
  const ts_run_request *q = r->request;
  const ts_type *const *types = ts_executable_param_types(q->program);
  size_t each = q->arg_count / (size_t)q->device_count;
  TS_TRY(TS_NEW_ARRAY(q->arg_count, &r->args));
  TS_TRY(TS_NEW_ARRAY(ts_bits_words(q->arg_count), &r->donated));
  for (size_t i = 0; i < q->arg_count; i++) TS_TRY(view_arg(r, i, types[i % each]));
  return TS_SUCCESS;
}

static void release_views(host_run *r, bool succeeded) {
  for (size_t i = 0; r->args && i < r->request->arg_count; i++) {
    if (!succeeded && r->args[i] && r->args[i]->spent) ts_bits_set(r->request->spent, i);
    if (!is_view(r, i)) continue;
    ts_buffer_release(r->args[i]);
    if (succeeded && ts_bits_has(r->request->donated, i)) ts_buffer_release(r->request->args[i]);
  }
  ts_free(r->args);
  ts_free(r->donated);
}

static ts_status begin(host_run *r) {
  const ts_run_request *q = r->request;
  const ts_executable *exe = q->program;
  ts_pool *pool = ts_host_pool(q->client);
  TS_TRY(view_args(r));
  ts_buffer *const *args = r->args;
  ts_bits donated = {r->donated, 0, q->arg_count};
  if (ts_executable_partitions(exe) == 1 && !ts_executable_has_coordinates(exe)) /* which a group adds */
    return ts_execution_create(
        exe, args, q->arg_count,
        &(ts_run_options){.control = q->control, .threads = q->threads, .donated = donated, .pool = pool},
        &r->execution);
  return ts_group_create(
      exe, args, q->arg_count / (size_t)q->device_count,
      &(ts_group_options){.control = q->control, .threads = q->threads, .donated = donated, .pool = pool}, &r->group);
}

static ts_status advance(host_run *r, ts_run_state *out_state) {
  return r->group ? ts_group_advance(r->group, out_state) : ts_execution_advance(r->execution, out_state);
}

static void finish(host_run *r, ts_status status) {
  ts_buffer **results = status ? NULL : (ts_buffer **)r->request->results;
  ts_status ended = r->group ? ts_group_end(r->group, results) : ts_execution_end(r->execution, results);
  ts_done done = r->done;
  if (status)
    ts_status_free(ended);
  else
    status = ended;
  release_views(r, !status);
  ts_free(r->operands);
  ts_free(r);
  ts_done_call(done, status);
}

static void answer(ts_program_call *call, ts_status status, const void *const *results);

static ts_status get_call(host_run *r) {
  ts_run_call c;
  ts_execution_get_call(r->execution, &c);
  ts_free(r->operands);
  r->operands = NULL;
  TS_TRY(TS_NEW_ARRAY(c.operand_count, &r->operands));
  for (uint32_t i = 0; i < c.operand_count; i++) r->operands[i] = ts_execution_operand(r->execution, i);
  r->call = (ts_program_call){.index = c.index,
                              .operand_count = c.operand_count,
                              .result_count = c.result_count,
                              .operand_types = c.operand_types,
                              .result_types = c.result_types,
                              .operands = r->operands,
                              .answer = answer};
  return TS_SUCCESS;
}

/* Whether it was answered at once. */
static ts_status hand_out(host_run *r, bool *out_answered) {
  int called = CALLED;
  *out_answered = true;
  TS_TRY(get_call(r));
  atomic_store(&r->phase, CALLED);
  r->request->call(&r->call, r->request->call_arg);
  if (atomic_compare_exchange_strong(&r->phase, &called, PARKED)) {
    *out_answered = false; /* the run is another thread's from here on */
    return TS_SUCCESS;
  }
  return r->refused;
}

static void go_on(host_run *r) {
  ts_run_state state;
  bool answered = true;
  ts_status status = r->refused;
  while (!status) {
    status = advance(r, &state);
    if (status || state == TS_RUN_DONE) break;
    if (state == TS_RUN_CALLBACK) status = hand_out(r, &answered);
    if (!answered) return;
  }
  finish(r, status);
}

/* A buffer for each result, around a copy of the caller's bytes. */
static ts_status take(host_run *r, const void *const *results) {
  const ts_program_call *c = &r->call;
  ts_buffer **buffers;
  uint32_t made = 0;
  TS_TRY(TS_NEW_ARRAY(c->result_count, &buffers));
  ts_status status = TS_SUCCESS;
  while (!status && made < c->result_count) {
    const ts_type *type = c->result_types[made];
    status = ts_buffer_wrap(type->dtype, &type->shape, (void *)(uintptr_t)results[made], NULL, NULL, &buffers[made]);
    if (!status) made++;
  }
  if (!status) status = ts_execution_answer(r->execution, buffers, made);
  while (made-- > 0) ts_buffer_release(buffers[made]);
  ts_free(buffers);
  return status;
}

static void answer(ts_program_call *call, ts_status status, const void *const *results) {
  host_run *r = (host_run *)call;
  r->refused = status ? status : take(r, results);
  if (atomic_exchange(&r->phase, ANSWERED) == PARKED) go_on(r);
}

void ts_host_run(const ts_run_request *request, ts_done done) {
  host_run *r;
  ts_status status = TS_NEW(&r);
  if (status) {
    ts_done_call(done, status);
    return;
  }
  r->request = request;
  r->done = done;
  status = begin(r);
  if (status)
    finish(r, status);
  else
    go_on(r);
}
