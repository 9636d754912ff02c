/* A run on a device that works by itself. Its steps: arguments go to the devices of the run, if they are not there; the
 * platform runs the program, and may ask for callbacks. Each step ends with an event, on any thread.
 *
 *   advance() begins a step.     BUSY -> PARKED: it returns TS_RUN_WAITING; the event calls `ready`.
 *                                BUSY -> EVENT: the event was faster; advance() returns the event's state.
 *   end() during a callback.     ABANDONED: the callback is refused, and the last event frees the run. */
#include "device/remote.h"

#include "base/alloc.h"

typedef enum phase { BUSY, PARKED, EVENT, ABANDONED } phase;
typedef enum step { TO_PLACE, TO_ANSWER, CALLED, FINISHED } step;

struct ts_pending {
  ts_loaded *loaded;
  ts_run_args args;
  ts_run_request request;
  ts_device *devices[TS_MAX_DEVICES];
  int32_t ids[TS_MAX_DEVICES];
  size_t each;        /* arguments of a partition */
  ts_buffer **placed; /* a reference to each argument on its device */
  ts_bits may_take;   /* of the arguments, as the caller says */
  uint64_t *donated;  /* those whose memory the run takes, if it succeeds */
  uint64_t *spent;    /* those that it has overwritten, if it fails */
  size_t result_count;
  ts_program_call *call;
  ts_buffer **answers;          /* to it, in host memory once they are fetched */
  _Atomic int64_t missing;      /* transfers, and 1 while they are begun */
  ts_status _Atomic failed;     /* the first transfer's error */
  ts_status status;             /* of the run */
  void (*ready)(void *context); /* NULL: advance() waits */
  void *context;
  ts_wait wait;
  ts_done woken;
  step step;
  _Atomic int phase;
};

static size_t total_args(const ts_pending *p) { return p->args.count; }

static ts_device *device_of_arg(const ts_pending *p, size_t i) { return p->devices[p->each ? i / p->each : 0]; }

static void release_all(ts_buffer **buffers, size_t count) {
  for (size_t i = 0; buffers && i < count; i++) ts_buffer_release(buffers[i]);
}

static void free_answers(ts_pending *p) {
  if (p->answers) release_all(p->answers, 2 * (size_t)p->call->result_count);
  ts_free(p->answers);
  p->answers = NULL;
}

static void destroy(ts_pending *p) {
  ts_client *client = p->loaded->client;
  for (size_t i = 0; p->request.results && i < p->result_count; i++)
    if (p->request.results[i]) client->platform->release_memory(p->request.results[i]);
  release_all(p->placed, total_args(p));
  ts_free(p->placed);
  ts_free(p->donated);
  ts_free(p->spent);
  ts_free((void *)(uintptr_t)p->request.args);
  ts_free(p->request.results);
  ts_status_free(p->status);
  ts_status_free(atomic_load(&p->failed));
  ts_loaded_release(p->loaded);
  ts_free(p);
  ts_client_unuse(client);
}

/* ---- events */

static void event(ts_pending *p) {
  int old = atomic_exchange(&p->phase, EVENT);
  if (old == PARKED) p->ready(p->context);
  if (old == ABANDONED) destroy(p);
}

/* Marks arguments, even if the caller has other references. */
static void mark(ts_pending *p, const uint64_t *which, void (*as)(ts_buffer *)) {
  for (size_t i = 0; i < total_args(p); i++)
    if (which[i / 64] >> i % 64 & 1) as(p->placed[i]);
}

/* The event of a run that its caller has left behind is its end: the callback was refused. */
static void ran(ts_status status, void *arg) {
  ts_pending *p = arg;
  if (status)
    mark(p, p->spent, ts_remote_lost);
  else
    mark(p, p->donated, ts_remote_taken);
  p->status = status;
  p->step = FINISHED;
  event(p);
}

static void called(ts_program_call *call, void *arg) {
  ts_pending *p = arg;
  p->call = call;
  p->step = CALLED;
  event(p);
}

/* ---- arguments and answers: all transfers at once */

static void transferred_all(ts_pending *p);

static void transferred(ts_status status, void *arg) {
  ts_pending *p = arg;
  ts_status_keep_first(&p->failed, status);
  if (atomic_fetch_sub(&p->missing, 1) == 1) transferred_all(p);
}

static void begin_run(ts_pending *p) {
  void **memories = (void **)(uintptr_t)p->request.args;
  for (size_t i = 0; i < total_args(p); i++) memories[i] = ts_remote_memory(p->placed[i]);
  p->loaded->client->platform->run(&p->request, (ts_done){ran, p});
}

static void give_answer(ts_pending *p) {
  const void *few[8], **bytes = few;
  uint32_t count = p->call->result_count;
  ts_program_call *call = p->call;
  ts_status status = count > 8 ? TS_NEW_ARRAY(count, &bytes) : TS_SUCCESS;
  for (uint32_t i = 0; !status && i < count; i++) bytes[i] = p->answers[count + i]->data;
  ts_buffer **answers = p->answers;
  p->answers = NULL;
  call->answer(call, status, status ? NULL : bytes); /* the run continues, and may end before this returns */
  release_all(answers, 2 * (size_t)count);
  ts_free(answers);
  if (bytes != few) ts_free(bytes);
}

/* With an error the run has not begun, or the callback is refused. */
static void transferred_all(ts_pending *p) {
  ts_status failed = atomic_exchange(&p->failed, NULL);
  if (p->step == TO_PLACE) {
    if (failed)
      ran(failed, p);
    else
      begin_run(p);
  } else if (failed) {
    free_answers(p);
    p->call->answer(p->call, failed, NULL);
  } else {
    give_answer(p);
  }
}

/* The argument itself may be taken where nothing else refers to its memory. */
static void use_in_place(ts_pending *p, size_t i, bool may_take) {
  ts_buffer *arg = p->args.buffers[i];
  ts_status status = ts_remote_check(arg);
  if (may_take && ts_buffer_root(arg) == arg && atomic_load(&arg->refs) == 1) ts_bits_set(p->donated, i);
  ts_buffer_retain(arg);
  p->placed[i] = arg;
  transferred(status, p);
}

static void place_one(ts_pending *p, size_t i, bool may_take) {
  ts_device *device = device_of_arg(p, i);
  ts_buffer *arg = p->args.buffers[i];
  if (arg->device == device && arg->elsewhere) {
    use_in_place(p, i, may_take);
  } else {
    ts_bits_set(p->donated, i); /* the copy is the run's own */
    ts_device_copy_start(device, arg, &p->placed[i], (ts_done){transferred, p});
  }
}

static void fetch_one(ts_pending *p, uint32_t i) {
  ts_device_fetch_start(p->answers[i], 0, &p->answers[p->call->result_count + i], (ts_done){transferred, p});
}

/* ---- for callers */

static ts_status allocate(ts_pending *p) {
  TS_TRY(TS_NEW_ARRAY(total_args(p), &p->placed));
  TS_TRY(TS_NEW_ARRAY(ts_bits_words(total_args(p)), &p->donated));
  TS_TRY(TS_NEW_ARRAY(ts_bits_words(total_args(p)), &p->spent));
  TS_TRY(TS_NEW_ARRAY(p->result_count, &p->request.results));
  return ts_alloc_array(total_args(p), sizeof(void *), (void **)(uintptr_t)&p->request.args);
}

static ts_status check_args(const ts_pending *p) {
  const ts_loaded *loaded = p->loaded;
  size_t wanted = loaded->param_count - (loaded->coordinates ? 1 : 0);
  if (p->each != wanted)
    return ts_error(TS_INVALID_ARGUMENT, "the program takes %zu arguments, got %zu", wanted, p->each);
  for (size_t i = 0; i < total_args(p); i++) {
    const ts_buffer *arg = p->args.buffers[i];
    const ts_type *type = loaded->param_types[i % p->each];
    if (arg->dtype == type->dtype && ts_shape_equal(&arg->shape, &type->shape)) continue;
    return ts_error(TS_INVALID_ARGUMENT, "argument %zu is %s, the program was compiled for %s", i % p->each + 1,
                    TS_SHAPE_STR(arg->dtype, &arg->shape), TS_SHAPE_STR(type->dtype, &type->shape));
  }
  return TS_SUCCESS;
}

static void fill(ts_pending *p, const ts_pending_options *o) {
  const ts_loaded *loaded = p->loaded;
  for (int32_t i = 0; i < o->partitions; i++) {
    p->devices[i] = o->devices[i];
    p->ids[i] = o->devices[i]->id;
  }
  p->each = p->args.count / (size_t)o->partitions;
  p->result_count = loaded->result_count * (size_t)o->partitions;
  p->ready = o->ready;
  p->context = o->context;
  p->request = (ts_run_request){.program = loaded->own,
                                .client = loaded->client->own,
                                .devices = p->ids,
                                .device_count = o->partitions,
                                .arg_count = p->args.count,
                                .control = o->control,
                                .threads = o->threads,
                                .call = called,
                                .call_arg = p};
}

ts_status ts_pending_create(ts_loaded *loaded, ts_run_args args, const ts_pending_options *options, ts_pending **out) {
  ts_pending *p;
  *out = NULL;
  TS_TRY(ts_client_use(loaded->client));
  ts_status status = TS_NEW(&p);
  if (status) {
    ts_client_unuse(loaded->client);
    return status;
  }
  p->loaded = loaded;
  p->args = args;
  p->may_take = options->donated;
  ts_loaded_retain(loaded);
  fill(p, options);
  status = check_args(p);
  if (!status) status = allocate(p);
  if (status)
    destroy(p);
  else
    *out = p;
  return status;
}

/* The caller's transfers are begun; the last one's end is the next step, which may be in this call. */
static void begin_step(ts_pending *p) {
  atomic_store(&p->phase, BUSY);
  atomic_store(&p->missing, 1);
  if (p->step == TO_PLACE) {
    p->request.donated = (ts_bits){p->donated, 0, total_args(p)};
    p->request.spent = p->spent;
    atomic_fetch_add(&p->missing, (int64_t)total_args(p));
    for (size_t i = 0; i < total_args(p); i++) place_one(p, i, ts_bits_has(p->may_take, i));
  } else {
    uint32_t count = p->call->result_count;
    atomic_fetch_add(&p->missing, count);
    for (uint32_t i = 0; i < count; i++) fetch_one(p, i);
  }
  transferred(TS_SUCCESS, p);
}

static void wake(void *context) { ts_done_call(((ts_pending *)context)->woken, TS_SUCCESS); }

/* For a caller without `ready`. */
static void wait_for_event(ts_pending *p) {
  int busy = BUSY;
  p->ready = wake;
  p->context = p;
  p->woken = ts_wait_begin(&p->wait);
  if (atomic_compare_exchange_strong(&p->phase, &busy, PARKED)) ts_status_free(ts_wait_end(&p->wait));
  p->ready = NULL;
}

ts_status ts_pending_advance(ts_pending *p, ts_run_state *out_state) {
  int busy = BUSY;
  if (p->step == TO_PLACE || p->step == TO_ANSWER) {
    begin_step(p);
    *out_state = TS_RUN_WAITING;
    if (!p->ready)
      wait_for_event(p);
    else if (atomic_compare_exchange_strong(&p->phase, &busy, PARKED))
      return TS_SUCCESS; /* the run may go on in another thread already */
  }
  *out_state = p->step == CALLED ? TS_RUN_CALLBACK : TS_RUN_DONE;
  ts_status status = p->status;
  p->status = NULL;
  return status;
}

const ts_program_call *ts_pending_call(const ts_pending *p) { return p->call; }

ts_status ts_pending_answer(ts_pending *p, ts_buffer *const *results, size_t count) {
  if (p->step != CALLED) return ts_error(TS_FAILED_PRECONDITION, "the run waits for no callback");
  const ts_run_call call = {
      .index = p->call->index, .result_count = p->call->result_count, .result_types = p->call->result_types};
  TS_TRY(ts_run_call_check(&call, results, count));
  TS_TRY(TS_NEW_ARRAY(2 * count, &p->answers));
  for (size_t i = 0; i < count; i++) {
    ts_buffer_retain(results[i]);
    p->answers[i] = results[i];
  }
  p->step = TO_ANSWER;
  return TS_SUCCESS;
}

static ts_status wrap_results(ts_pending *p, ts_buffer **out) {
  ts_client *client = p->loaded->client;
  size_t each = p->loaded->result_count;
  for (size_t i = 0; i < p->result_count; i++) {
    void *memory = p->request.results[i];
    p->request.results[i] = NULL;
    ts_client_use_more(client);
    ts_status status = ts_remote_wrap(p->devices[i / each], p->loaded->result_types[i % each], memory, &out[i]);
    if (!status) continue;
    release_all(out, i);
    return status;
  }
  return TS_SUCCESS;
}

/* Refuses the callback. The run frees itself when the platform has ended it, maybe in this call. Until then it may
 * write to its donated arguments. */
static void abandon(ts_pending *p) {
  free_answers(p);
  mark(p, p->donated, ts_remote_lost);
  ts_program_call *call = p->call;
  atomic_store(&p->phase, ABANDONED);
  call->answer(call, ts_error(TS_CANCELLED, "the run was abandoned"), NULL);
}

ts_status ts_pending_end(ts_pending *p, ts_buffer **out_results) {
  ts_status status = TS_SUCCESS;
  if (p->step == CALLED || p->step == TO_ANSWER) {
    abandon(p);
    return TS_SUCCESS;
  }
  if (out_results) status = wrap_results(p, out_results);
  for (size_t i = 0; out_results && !status && i < total_args(p); i++)
    if (ts_bits_has(p->may_take, i)) ts_buffer_release(p->args.buffers[i]);
  destroy(p);
  return status;
}
